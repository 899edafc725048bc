//! TLS: the client's side. The handshake is rustls's, the records after it are our own.

mod handshake;
#[cfg(test)]
mod tests;

use super::records::{self, Records};
use super::{HUNG_UP, Link, failure};
use handshake::{Early, Facts, Handshake, Kept, Progress};
use knee_core::measure::{Agreed, Handshakes};
use knee_core::spec::TlsResume;
use knee_core::time::Nanos;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};
use std::sync::Arc;
use std::time::Instant;

/// With whom connections are secured, and how.
#[derive(Clone)]
pub(crate) struct TlsTarget {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    pub(super) own: Arc<super::config::Own>,
    pub(super) resume: TlsResume,
}

/// What the secured connections of a worker share.
pub(crate) struct Shared {
    target: TlsTarget,
    /// Where records are decrypted.
    plain: Box<[u8]>,
}

impl From<TlsTarget> for Shared {
    fn from(target: TlsTarget) -> Shared {
        Shared {
            target,
            plain: vec![0; records::ROOM].into_boxed_slice(),
        }
    }
}

/// One connection's TLS. Boxed, as a pool has room for many connections that are not open.
pub(crate) struct Tls(Box<Session>);

struct Session {
    stage: Stage,
    /// What the handshake has to say.
    out: Vec<u8>,
    /// What this process spent on the handshake.
    spent: Nanos,
}

enum Stage {
    Handshake(Handshake),
    Secured(Facts, Records<Kept>),
    /// The handshake failed, or the peer ended it. What comes then means nothing.
    Failed,
}

impl Link for Tls {
    type Shared = Shared;

    const IS_CLEAR: bool = false;

    fn new(shared: &mut Shared) -> Result<Tls, String> {
        let TlsTarget { config, name, .. } = &shared.target;
        let begun = Instant::now();
        let mut out = Vec::new();
        let handshake = Handshake::new(config, name, &mut out);
        let handshake = handshake.map_err(|error| failure::words(&error))?;
        Ok(Tls(Box::new(Session {
            stage: Stage::Handshake(handshake),
            out,
            spent: since(begun),
        })))
    }

    fn secure(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        let begun = Instant::now();
        let advanced = self.0.advance(wire);
        self.0.spent += since(begun);
        advanced.inspect_err(|_| self.0.stage = Stage::Failed)
    }

    #[inline]
    fn is_secured(&self) -> bool {
        matches!(self.0.stage, Stage::Secured(..))
    }

    fn takes_early(&self) -> bool {
        matches!(&self.0.stage, Stage::Handshake(handshake) if handshake.takes_early())
    }

    fn is_early_taken(&self) -> bool {
        matches!(&self.0.stage, Stage::Secured(facts, _) if facts.early == Early::Taken)
    }

    #[inline]
    fn open(
        &mut self,
        wire: &[u8],
        shared: &mut Shared,
        mut take: impl FnMut(&[u8], usize),
    ) -> Result<(), String> {
        match &mut self.0.stage {
            Stage::Secured(_, records) => records
                .open(wire, &mut shared.plain, &mut take)
                .map_err(|violation| failure::of_records(&violation)),
            _ => Ok(()),
        }
    }

    #[inline]
    fn is_ended(&self) -> bool {
        matches!(&self.0.stage, Stage::Secured(_, records) if records.is_ended())
    }

    #[inline]
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) {
        match &mut self.0.stage {
            Stage::Secured(_, records) => records.seal(plain, wire),
            Stage::Handshake(handshake) => handshake.seal_early(plain, wire),
            Stage::Failed => {}
        }
    }

    #[inline]
    fn has_wire(&self) -> bool {
        let answers = match &self.0.stage {
            Stage::Secured(_, records) => records.has_answers(),
            _ => false,
        };
        answers || !self.0.out.is_empty()
    }

    #[inline]
    fn take_wire(&mut self, into: &mut Vec<u8>) {
        into.append(&mut self.0.out);
        if let Stage::Secured(_, records) = &mut self.0.stage {
            into.append(records.answers());
        }
    }

    fn note(&self, of: &mut Handshakes) {
        match &self.0.stage {
            Stage::Secured(facts, _) if facts.kind == Some(HandshakeKind::Resumed) => {
                of.resumed += 1;
            }
            _ => of.full += 1,
        }
        if let Stage::Secured(facts, _) = &self.0.stage {
            match facts.early {
                Early::None => {}
                Early::Taken => of.early_data.taken += 1,
                Early::Refused => of.early_data.refused += 1,
            }
        }
        of.generator += self.0.spent;
        if of.agreed.is_none() {
            of.agreed = self.agreed();
        }
    }
}

impl Session {
    fn advance(&mut self, wire: &mut &[u8]) -> Result<(), String> {
        let Stage::Handshake(handshake) = &mut self.stage else {
            *wire = &[];
            return Ok(());
        };
        let progress = handshake.take_in(wire, &mut self.out);
        match progress.map_err(|error| failure::words(&error))? {
            Progress::Waits => {}
            Progress::Ended => return Err(HUNG_UP.to_owned()),
            Progress::Over => {
                let stage = std::mem::replace(&mut self.stage, Stage::Failed);
                if let Stage::Handshake(handshake) = stage {
                    let finished = handshake.finish(&mut self.out);
                    let (facts, records) = finished.map_err(|error| failure::words(&error))?;
                    self.stage = Stage::Secured(facts, records);
                }
            }
        }
        Ok(())
    }
}

impl Tls {
    /// Whether the server tells only after the handshake that it refuses the client.
    pub(super) fn is_told_later(&self) -> bool {
        matches!(&self.0.stage, Stage::Secured(facts, _)
            if facts.version == ProtocolVersion::TLSv1_3)
    }

    /// What both sides agreed on, once they have.
    pub(super) fn agreed(&self) -> Option<Agreed> {
        let Stage::Secured(facts, _) = &self.0.stage else {
            return None;
        };
        let protocol = facts.protocol.as_deref();
        Some(Agreed {
            version: version_name(facts.version).to_owned(),
            cipher: facts.suite.suite().as_str().unwrap_or("?").to_owned(),
            group: facts
                .group
                .and_then(|group| group.name().as_str())
                .map(str::to_owned),
            protocol: protocol.map(|p| String::from_utf8_lossy(p).into_owned()),
        })
    }
}

fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "1.2",
        ProtocolVersion::TLSv1_3 => "1.3",
        _ => "?",
    }
}

fn since(begun: Instant) -> Nanos {
    Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
