//! The platforms that a release is for, and how a static binary is built for each.

use crate::repo::{output, step};
use std::fs;
use std::path::{Path, PathBuf};

/// Processor architecture, under Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Platform {
    /// Rust's name of it.
    pub(super) processor: &'static str,
    /// Debian's name of it.
    pub(super) debian: &'static str,
}

pub(super) const PLATFORMS: [Platform; 2] = [
    Platform { processor: "x86_64", debian: "amd64" },
    Platform { processor: "aarch64", debian: "arm64" },
];

/// What compiles C for another platform, from PyPI: a program for cargo, and the compiler.
const CROSS_COMPILER: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

impl Platform {
    /// This machine's.
    pub(super) fn here() -> Platform {
        let here = PLATFORMS.into_iter().find(|platform| platform.is_here());
        here.unwrap_or(Platform {
            processor: std::env::consts::ARCH,
            debian: std::env::consts::ARCH,
        })
    }

    pub(super) fn is_here(self) -> bool {
        self.processor == std::env::consts::ARCH
    }

    /// The target of rustc, with a static C library.
    pub(super) fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.processor)
    }

    pub(super) fn binary(self, root: &Path, profile: &str) -> PathBuf {
        let folder = if profile == "dev" { "debug" } else { profile };
        root.join(format!("target/{}/{folder}/knee", self.target()))
    }

    /// Builds the binary, and looks whether it is static.
    ///
    /// # Errors
    /// A compiler is missing and cannot be installed; the build failed; the binary is not static.
    pub(super) fn build(self, root: &Path, profile: &str) -> Result<(), String> {
        let target = self.target();
        let libraries = output("rustc", &["--print", "target-libdir", "--target", &target])?;
        if !Path::new(&libraries).exists() {
            step("rustup", &["target", "add", &target], root)?;
        }
        let builder = if self.is_here() {
            vec!["cargo".to_owned(), "build".to_owned()]
        } else {
            let folder = cross_compiler(root)?.display().to_string();
            let python = format!("CARGO_ZIGBUILD_PYTHON_PATH={folder}/python3");
            let program = format!("{folder}/cargo-zigbuild");
            vec!["env".to_owned(), python, program, "zigbuild".to_owned()]
        };
        let arguments = [
            "--profile",
            profile,
            "--target",
            &target,
            "--package",
            "knee",
            "--all-features",
            "--locked",
            // Wherever the environment has others build.
            "--target-dir",
            "target",
        ];
        let words: Vec<&str> = builder.iter().map(String::as_str).chain(arguments).collect();
        step(words[0], &words[1..], root)?;
        let binary = self.binary(root, profile);
        let bytes = fs::read(&binary).map_err(|e| format!("{}: {e}", binary.display()))?;
        match has_interpreter(&bytes) {
            Some(false) => Ok(()),
            Some(true) => Err(format!("{} is not static", binary.display())),
            None => Err(format!("{} is no ELF file", binary.display())),
        }
    }
}

/// The folder with `cargo-zigbuild` and the Python that has its compiler, installed if it is not.
fn cross_compiler(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/zigbuild");
    if !folder.join("bin/cargo-zigbuild").is_file() {
        let place = folder.display().to_string();
        let missing = |why: String| {
            format!("no cross-compiler: {} from PyPI: {why}", CROSS_COMPILER.join(", "))
        };
        step("python3", &["-m", "venv", &place], root).map_err(missing)?;
        let pip = folder.join("bin/pip").display().to_string();
        let install = [&["install", "--quiet"], &CROSS_COMPILER[..]].concat();
        step(&pip, &install, root).map_err(missing)?;
    }
    Ok(folder.join("bin"))
}

/// Whether an ELF file asks for a dynamic linker: it has a program header of the type PT_INTERP (3;
/// elf(5)). `None` if it is no ELF file of 64 bits.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let little_endian = elf.get(at..at + bytes)?.iter().rev();
        Some(little_endian.fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for i in 0..count {
        let at = usize::try_from(first + i * size).ok()?;
        if number(at, 4)? == 3 {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header and program headers of these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * types.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[32], bytes[54]) = (64, 56);
        bytes[56] = u8::try_from(types.len()).expect("few");
        for (i, kind) in types.iter().enumerate() {
            bytes[64 + 56 * i..][..4].copy_from_slice(&kind.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn a_static_binary_is_told_from_one_that_needs_a_linker() {
        assert_eq!(has_interpreter(&elf(&[1, 1, 7])), Some(false));
        assert_eq!(has_interpreter(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(has_interpreter(&elf(&[1, 3])[..70]), None);
        assert_eq!(has_interpreter(b"#!/bin/sh"), None);
    }
}
