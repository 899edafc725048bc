//! `cargo xtask dist`: what a release consists of, in `target/packages`.

use crate::shell::{copy, make, output, step, write};
use crate::{repo, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What builds a static binary beside Rust: the C compiler for SQLite, and what packs it.
const FOR_DIST: [tools::Tool; 2] = [
    tools::tool("musl-gcc", "musl-tools", "the static binary"),
    tools::tool("dpkg-deb", "dpkg", "the Debian package"),
];

/// Programs that build a container image, the first one that works is used.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Makes the static binary with its manual pages and completions, an archive and a Debian package
/// of them, and the checksums. Makes a Python wheel too where maturin is installed, and a container
/// image where a builder is.
///
/// # Errors
/// What is missing, or which step failed.
pub fn run() -> Result<(), String> {
    if let Some(tool) = tools::install(&FOR_DIST).first() {
        return Err(format!("{} is missing: {}", tool.program, tool.purpose));
    }
    let root = repo::root();
    let release = Release::new(&root)?;
    release.build()?;
    release.stage()?;
    release.archive()?;
    release.package()?;
    release.wheel()?;
    release.image()?;
    release.checksums()?;
    println!("\nin {}:", release.dist.display());
    for name in release.made()? {
        println!("  {name}");
    }
    Ok(())
}

/// What is made, and where.
struct Release {
    root: PathBuf,
    dist: PathBuf,
    /// The target of rustc: this machine's processor, with a static C library.
    target: String,
    version: String,
}

impl Release {
    fn new(root: &Path) -> Result<Release, String> {
        let dist = root.join("target/packages");
        if dist.exists() {
            fs::remove_dir_all(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
        }
        make(&dist)?;
        Ok(Release {
            root: root.to_owned(),
            dist,
            target: format!("{}-unknown-linux-musl", std::env::consts::ARCH),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// `knee-0.2.0-x86_64-linux`.
    fn name(&self) -> String {
        format!("knee-{}-{}-linux", self.version, std::env::consts::ARCH)
    }

    fn binary(&self) -> PathBuf {
        let built = format!("target/{}/dist/knee", self.target);
        self.root.join(built)
    }

    fn build(&self) -> Result<(), String> {
        let libraries = output("rustc", &["--print", "target-libdir", "--target", &self.target])?;
        if !Path::new(&libraries).exists() {
            step("rustup", &["target", "add", &self.target], &self.root)?;
        }
        let arguments = [
            "build",
            "--profile",
            "dist",
            "--target",
            &self.target,
            "--package",
            "knee",
            "--locked",
            // Wherever the environment has others build.
            "--target-dir",
            "target",
        ];
        step("cargo", &arguments, &self.root)?;
        let binary = self.binary();
        let bytes = fs::read(&binary).map_err(|e| format!("{}: {e}", binary.display()))?;
        match has_interpreter(&bytes) {
            Some(false) => Ok(()),
            Some(true) => Err(format!("{} is not static", binary.display())),
            None => Err(format!("{} is no ELF file", binary.display())),
        }
    }

    /// The folder that the archive holds: laid out so that it can be copied to `/usr/local`.
    fn stage(&self) -> Result<(), String> {
        let folder = self.dist.join(self.name());
        let knee = self.binary();
        copy(&knee, &folder.join("bin/knee"))?;
        let man = folder.join("share/man/man1");
        make(&man)?;
        let knee = knee.display().to_string();
        let man = man.display().to_string();
        step(&knee, &["man", "--dir", &man], &self.root)?;
        for (shell, file) in [
            ("bash", "bash-completion/completions/knee"),
            ("zsh", "zsh/site-functions/_knee"),
            ("fish", "fish/vendor_completions.d/knee.fish"),
        ] {
            let file = folder.join("share").join(file);
            write(&file, output(&knee, &["completions", shell])? + "\n")?;
        }
        for text in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            let to = folder.join("share/doc/knee").join(text);
            copy(&self.root.join(text), &to)?;
        }
        Ok(())
    }

    fn archive(&self) -> Result<(), String> {
        let file = format!("{}.tar.gz", self.name());
        let arguments = [
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "-czf",
            &file,
            &self.name(),
        ];
        step("tar", &arguments, &self.dist)
    }

    fn package(&self) -> Result<(), String> {
        let root = self.dist.join("deb");
        let usr = root.join("usr").display().to_string();
        make(&root)?;
        let staged = self.name();
        step("cp", &["-r", &staged, &usr], &self.dist)?;
        let architecture = output("dpkg", &["--print-architecture"])?;
        let control = control(&self.version, &architecture);
        write(&root.join("DEBIAN/control"), control)?;
        let root = root.display().to_string();
        let file = format!("knee_{}_{}.deb", self.version, &architecture);
        let arguments = ["--root-owner-group", "--build", &root, &file];
        step("dpkg-deb", &arguments, &self.dist)?;
        fs::remove_dir_all(&root).map_err(|e| format!("{root}: {e}"))
    }

    /// A wheel of the Python package with the same binary, for glibc and musl.
    fn wheel(&self) -> Result<(), String> {
        let Some(maturin) = tools::find("maturin") else {
            println!("no Python wheel: maturin is not installed (pip install maturin)");
            return Ok(());
        };
        let out = self.dist.display().to_string();
        let built = ["build", "--profile", "dist", "--target", &self.target, "--out", &out];
        // A static binary runs beside either library.
        let tags = ["--compatibility", "manylinux2014", "musllinux_1_2"];
        let arguments = [&built[..], &tags].concat();
        step(&maturin.display().to_string(), &arguments, &self.root.join("python"))
    }

    /// An image of nothing but the binary, as an archive that `podman load` and `docker load` read.
    fn image(&self) -> Result<(), String> {
        let works = |builder: &&&str| output(builder, &["info"]).is_ok();
        let Some(builder) = BUILDERS.iter().find(works) else {
            println!("no container image: none of {} works here", BUILDERS.join(", "));
            return Ok(());
        };
        let recipe = "FROM scratch\nCOPY bin/knee /knee\nENTRYPOINT [\"/knee\"]\n";
        let folder = self.dist.join(self.name());
        let file = self.dist.join("Containerfile");
        write(&file, recipe)?;
        let (file, folder) = (file.display().to_string(), folder.display().to_string());
        let tag = format!("knee:{}", self.version);
        step(builder, &["build", "-t", &tag, "-f", &file, &folder], &self.dist)?;
        let image = format!("{}-image.tar", self.name());
        match *builder {
            "buildah" => {
                let to = format!("docker-archive:{image}:{tag}");
                step(builder, &["push", &tag, &to], &self.dist)
            }
            _ => step(builder, &["save", "-o", &image, &tag], &self.dist),
        }
    }

    fn checksums(&self) -> Result<(), String> {
        let sums = Command::new("sha256sum")
            .args(self.made()?)
            .current_dir(&self.dist)
            .output()
            .map_err(|e| format!("sha256sum: {e}"))?;
        write(&self.dist.join("SHA256SUMS"), &sums.stdout)
    }

    /// The files to be published.
    fn made(&self) -> Result<Vec<String>, String> {
        let entries =
            fs::read_dir(&self.dist).map_err(|e| format!("{}: {e}", self.dist.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("knee") || name == "SHA256SUMS")
            .collect();
        names.sort();
        Ok(names)
    }
}

/// The description of the Debian package (deb-control(5)).
fn control(version: &str, architecture: &str) -> String {
    format!(
        "Package: knee\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: \
         optional\nMaintainer: The knee maintainers <knee@localhost>\nDescription: load-testing \
         laboratory in one binary\n Finds where a server or a network path bends, and says whether \
         the result can be trusted.\n"
    )
}

/// Whether an ELF file asks for a dynamic linker: it has a program header of the type PT_INTERP (3;
/// elf(5)). `None` where it is no ELF file of 64 bits.
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

    #[test]
    fn the_package_describes_itself() {
        let text = control("0.2.0", "amd64");
        assert!(text.contains("Version: 0.2.0\nArchitecture: amd64\n"), "{text}");
        assert!(text.ends_with(".\n") && text.contains("\n Finds where"), "{text}");
    }
}
