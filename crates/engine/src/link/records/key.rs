//! One direction's key: seals and opens single records.

use super::Violation;
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};

/// Bytes of a record's header: kind, version, length.
pub(super) const HEADER: usize = 5;

/// Most bytes that a record carries (RFC 8446 §5.1).
pub(super) const PLAIN_MAX: usize = 1 << 14;

/// Most bytes of a record behind its header (RFC 8446 §5.2). In TLS 1.2 the ciphers of [`Cipher`]
/// make no longer ones.
pub(super) const SEALED_MAX: usize = PLAIN_MAX + 256;

const TAG: usize = 16;
const NONCE: usize = 12;

/// The kinds of records (RFC 8446 §5.1).
pub(crate) mod kind {
    pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const DATA: u8 = 23;
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// With the ciphers of [`Cipher`] (RFC 5246, 5288, 7905).
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// How records are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES with a key of 16 bytes.
    Aes128Gcm,
    /// AES with a key of 32 bytes.
    Aes256Gcm,
    /// With a key of 32 bytes.
    Chacha20Poly1305,
}

/// Seals or opens the records of one direction, each with the next sequence number.
pub struct Key {
    aead: LessSafeKey,
    iv: [u8; NONCE],
    sequence: u64,
    version: Version,
    /// So many bytes of the nonce stand before each record (RFC 5288 §3).
    explicit: usize,
}

impl Key {
    /// A key whose next record has this sequence number. `None`: `bytes` is not as long as the
    /// cipher's keys are.
    pub fn new(
        (version, cipher): (Version, Cipher),
        bytes: &[u8],
        iv: [u8; 12],
        sequence: u64,
    ) -> Option<Key> {
        let algorithm = match cipher {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::Chacha20Poly1305 => &CHACHA20_POLY1305,
        };
        let is_explicit = version == Version::Tls12 && cipher != Cipher::Chacha20Poly1305;
        Some(Key {
            aead: LessSafeKey::new(UnboundKey::new(algorithm, bytes).ok()?),
            iv,
            sequence,
            version,
            explicit: if is_explicit { 8 } else { 0 },
        })
    }

    /// The sequence number of the next record.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The IV, and the sequence number in its last 8 bytes (RFC 8446 §5.3). In TLS 1.2 as well:
    /// where the nonce is explicit, any will do that is not used twice.
    #[inline]
    fn nonce(&self) -> [u8; NONCE] {
        let mut nonce = self.iv;
        for (byte, of) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= of;
        }
        nonce
    }

    /// What is authenticated with a record of `length` bytes in clear (RFC 5246 §6.2.3.3), or with
    /// this header (RFC 8446 §5.2); and how much of it.
    #[inline]
    fn associated(&self, header: [u8; HEADER], length: usize) -> ([u8; 13], usize) {
        let mut all = [0; 13];
        match self.version {
            Version::Tls13 => {
                all[..HEADER].copy_from_slice(&header);
                (all, HEADER)
            }
            Version::Tls12 => {
                all[..8].copy_from_slice(&self.sequence.to_be_bytes());
                all[8..11].copy_from_slice(&header[..3]);
                all[11..].copy_from_slice(&(length as u16).to_be_bytes());
                (all, 13)
            }
        }
    }

    /// Opens a whole record into `plain`, which has room for [`SEALED_MAX`] bytes: its kind, and
    /// what was in it.
    #[inline]
    pub(super) fn open<'a>(
        &mut self,
        record: &[u8],
        plain: &'a mut [u8],
    ) -> Result<(u8, &'a [u8]), Violation> {
        let Some((&header, sealed)) = record.split_first_chunk::<HEADER>() else {
            return Err(Violation::Unauthentic);
        };
        let is_13 = self.version == Version::Tls13;
        if is_13 && header[0] != kind::DATA {
            return Err(Violation::Unexpected("a record that is not encrypted"));
        }
        let Some(length) = sealed.len().checked_sub(self.explicit + TAG) else {
            return Err(Violation::Unauthentic);
        };
        let mut nonce = self.nonce();
        nonce[NONCE - self.explicit..].copy_from_slice(&sealed[..self.explicit]);
        let (cipher, tag) = sealed[self.explicit..].split_at(length);
        let (associated, end) = self.associated(header, length);
        let plain = &mut plain[..length];
        self.aead
            .open_separate_gather(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&associated[..end]),
                cipher,
                tag,
                plain,
            )
            .map_err(|_| Violation::Unauthentic)?;
        self.sequence += 1;
        let (kind, content) = match is_13 {
            true => inner(plain)?,
            false => (header[0], &*plain),
        };
        match content.len() > PLAIN_MAX {
            true => Err(Violation::Oversized),
            false => Ok((kind, content)),
        }
    }

    /// Seals at most 16,384 bytes as one record of this kind, and puts it behind what is in `wire`.
    #[inline]
    pub fn seal(&mut self, kind: u8, plain: &[u8], wire: &mut Vec<u8>) {
        let is_13 = self.version == Version::Tls13;
        let length = self.explicit + plain.len() + usize::from(is_13) + TAG;
        let begin = wire.len();
        wire.reserve(HEADER + length);
        let [high, low] = (length as u16).to_be_bytes();
        let outer = if is_13 { kind::DATA } else { kind };
        let header = [outer, 3, 3, high, low];
        wire.extend_from_slice(&header);
        let nonce = self.nonce();
        wire.extend_from_slice(&nonce[NONCE - self.explicit..]);
        let from = wire.len();
        wire.extend_from_slice(plain);
        if is_13 {
            wire.push(kind);
        }
        let (associated, end) = self.associated(header, plain.len());
        let sealed = self.aead.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(&associated[..end]),
            &mut wire[from..],
        );
        self.sequence += 1;
        match sealed {
            Ok(tag) => wire.extend_from_slice(tag.as_ref()),
            // No record is too long for these ciphers. What is not sealed must not go out.
            Err(_) => wire.truncate(begin),
        }
    }
}

/// What TLS 1.3 encrypts: content, kind, zeros (RFC 8446 §5.4).
#[inline]
fn inner(plain: &[u8]) -> Result<(u8, &[u8]), Violation> {
    match plain.iter().rposition(|byte| *byte != 0) {
        Some(end) => Ok((plain[end], &plain[..end])),
        None => Err(Violation::Unexpected("a record of zeros only")),
    }
}
