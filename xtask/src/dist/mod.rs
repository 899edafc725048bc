//! `cargo xtask dist`: makes what a release consists of in `target/packages`, and checks it by
//! using it.

mod check;
mod platform;

use crate::repo::{copy, make, output, step, write};
use crate::{repo, tools};
use platform::{PLATFORMS, Platform};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that pack what is built.
const FOR_DIST: [tools::Tool; 2] = [
    tools::tool("musl-gcc", "musl-tools", "the static binary"),
    tools::tool("dpkg-deb", "dpkg", "the Debian packages"),
];

/// Programs that build a container image; the first one that works is used.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Makes static binaries with manual pages and completions for all platforms that can be built for
/// here: an archive and a Debian package of each. Adds the text of the release, the checksums, a
/// Python wheel where maturin is, and a container image where a builder works. Then uses what was
/// made. What cannot be made or used here is named, with the reason. `is_debug`: with the debug
/// build, to try the rest.
///
/// # Errors
/// No binary for this machine; which step or check failed.
pub fn run(is_debug: bool) -> Result<(), String> {
    let missing = tools::install(&FOR_DIST);
    if let Some(tool) = missing.iter().find(|tool| tool.program == "musl-gcc") {
        return Err(format!("{} is missing: {}", tool.program, tool.purpose));
    }
    let root = repo::root();
    let mut release = Release::new(&root, is_debug)?;
    for platform in PLATFORMS {
        match platform.build(&root, release.profile) {
            Ok(()) => release.built.push(platform),
            Err(why) if platform.is_here() => return Err(why),
            Err(why) => release.leave_out(format!("{}: {why}", platform.processor)),
        }
    }
    for platform in release.built.clone() {
        release.stage(platform)?;
        release.archive(platform)?;
        match missing.first() {
            None => release.package(platform)?,
            Some(tool) => release.leave_out(format!(
                "{} for {}: {} is missing",
                tool.purpose, platform.processor, tool.program
            )),
        }
    }
    release.wheel()?;
    release.image()?;
    release.text()?;
    release.checksums()?;
    let checks = check::all(&release)?;
    println!("\nin {}:", release.dist.display());
    for name in release.published_files()? {
        println!("  {name}");
    }
    println!("checked:");
    for line in checks.passed {
        println!("  {line}");
    }
    for line in release.left_out.iter().chain(&checks.left_out) {
        println!("left out: {line}");
    }
    Ok(())
}

/// What is made, and where.
struct Release {
    root: PathBuf,
    dist: PathBuf,
    /// Cargo's profile.
    profile: &'static str,
    version: String,
    /// The platforms that have a binary.
    built: Vec<Platform>,
    /// What built the container image, if any.
    image_builder: Option<&'static str>,
    /// What was not made, each with the reason.
    left_out: Vec<String>,
}

impl Release {
    fn new(root: &Path, is_debug: bool) -> Result<Release, String> {
        let dist = root.join("target/packages");
        if dist.exists() {
            fs::remove_dir_all(&dist).map_err(|e| format!("{}: {e}", dist.display()))?;
        }
        make(&dist)?;
        Ok(Release {
            root: root.to_owned(),
            dist,
            profile: if is_debug { "dev" } else { "dist" },
            version: env!("CARGO_PKG_VERSION").to_owned(),
            built: Vec::new(),
            image_builder: None,
            left_out: Vec::new(),
        })
    }

    fn leave_out(&mut self, line: String) {
        println!("left out: {line}");
        self.left_out.push(line);
    }

    /// `knee-0.2.0-x86_64-linux`.
    fn name(&self, platform: Platform) -> String {
        format!("knee-{}-{}-linux", self.version, platform.processor)
    }

    fn package_file(&self, platform: Platform) -> String {
        format!("knee_{}_{}.deb", self.version, platform.debian)
    }

    fn binary(&self, platform: Platform) -> PathBuf {
        platform.binary(&self.root, self.profile)
    }

    /// The folder that the archive holds: laid out so that it can be copied to `/usr/local`.
    fn stage(&self, platform: Platform) -> Result<(), String> {
        let folder = self.dist.join(self.name(platform));
        copy(&self.binary(platform), &folder.join("bin/knee"))?;
        let man = folder.join("share/man/man1");
        make(&man)?;
        // Pages and completions are the same on all platforms: the binary of this one writes them.
        let knee = self.binary(Platform::here()).display().to_string();
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
        let doc = folder.join("share/doc/knee");
        for text in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            copy(&self.root.join(text), &doc.join(text))?;
        }
        // What starts fleets, and the recipe of the image. Passwords beside them are not in git.
        for file in
            output("git", &["-C", &self.root.display().to_string(), "ls-files", "deploy"])?.lines()
        {
            copy(&self.root.join(file), &doc.join(file))?;
        }
        Ok(())
    }

    fn archive(&self, platform: Platform) -> Result<(), String> {
        let arguments = [
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "-czf",
            &format!("{}.tar.gz", self.name(platform)),
            &self.name(platform),
        ];
        step("tar", &arguments, &self.dist)
    }

    fn package(&self, platform: Platform) -> Result<(), String> {
        let root = self.dist.join("deb");
        let usr = root.join("usr").display().to_string();
        make(&root)?;
        step("cp", &["-r", &self.name(platform), &usr], &self.dist)?;
        write(&root.join("DEBIAN/control"), control(&self.version, platform.debian))?;
        let root = root.display().to_string();
        let file = self.package_file(platform);
        let arguments = ["--root-owner-group", "--build", &root, &file];
        step("dpkg-deb", &arguments, &self.dist)?;
        fs::remove_dir_all(&root).map_err(|e| format!("{root}: {e}"))
    }

    /// A wheel of the Python package with this machine's binary, for glibc and musl.
    fn wheel(&mut self) -> Result<(), String> {
        let Some(maturin) = tools::find("maturin") else {
            let why = "maturin is not installed (pip install maturin)";
            self.leave_out(format!("the Python wheel: {why}"));
            return Ok(());
        };
        let (out, target) = (self.dist.display().to_string(), Platform::here().target());
        let built = ["build", "--profile", self.profile, "--target", &target, "--out", &out];
        // A static binary runs beside either library.
        let tags = ["--compatibility", "manylinux2014", "musllinux_1_2"];
        let arguments = [&built[..], &tags].concat();
        step(&maturin.display().to_string(), &arguments, &self.root.join("python"))
    }

    /// The image that `deploy/Containerfile` describes, as an archive that `podman load` and
    /// `docker load` read.
    fn image(&mut self) -> Result<(), String> {
        let file = self.root.join("deploy/Containerfile");
        let recipe = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let base = base_of(&recipe).ok_or("deploy/Containerfile has no FROM")?;
        let builder = match builder_with(base) {
            Ok(builder) => builder,
            Err(why) => {
                self.leave_out(format!("the container image: {why}"));
                return Ok(());
            }
        };
        let here = Platform::here();
        let folder = self.dist.join(self.name(here)).display().to_string();
        let (file, tag) = (file.display().to_string(), self.image_tag());
        step(builder, &["build", "-t", &tag, "-f", &file, &folder], &self.dist)?;
        let image = format!("{}-image.tar", self.name(here));
        if builder == "buildah" {
            step(builder, &["push", &tag, &format!("docker-archive:{image}:{tag}")], &self.dist)?;
        } else {
            step(builder, &["save", "-o", &image, &tag], &self.dist)?;
        }
        self.image_builder = Some(builder);
        Ok(())
    }

    /// `knee:0.2.0`.
    fn image_tag(&self) -> String {
        format!("knee:{}", self.version)
    }

    fn text(&self) -> Result<(), String> {
        let file = self.root.join("CHANGELOG.md");
        let changes = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let text = release_text(&changes, &self.version)
            .ok_or_else(|| format!("CHANGELOG.md says nothing of {}", self.version))?;
        write(&self.dist.join("RELEASE.md"), text)
    }

    fn checksums(&self) -> Result<(), String> {
        let sums = Command::new("sha256sum")
            .args(self.published_files()?)
            .current_dir(&self.dist)
            .output()
            .map_err(|e| format!("sha256sum: {e}"))?;
        write(&self.dist.join("SHA256SUMS"), &sums.stdout)
    }

    /// The files to be published.
    fn published_files(&self) -> Result<Vec<String>, String> {
        let entries =
            fs::read_dir(&self.dist).map_err(|e| format!("{}: {e}", self.dist.display()))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.path().is_file())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }
}

/// The image that a Containerfile begins with.
fn base_of(recipe: &str) -> Option<&str> {
    recipe.lines().find_map(|line| line.strip_prefix("FROM ")).map(str::trim)
}

/// The first of [`BUILDERS`] that works here and has the base, or brings it.
///
/// # Errors
/// What each of them said.
fn builder_with(base: &str) -> Result<&'static str, String> {
    let mut reasons = Vec::new();
    for builder in BUILDERS {
        match output(builder, &["pull", base]) {
            Ok(_) => return Ok(builder),
            Err(why) => reasons.push(why.trim().to_owned()),
        }
    }
    Err(reasons.join("; "))
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

/// What the changelog says of a release. The section `Unreleased` is newer than that of the
/// version, so it goes first while it has a line. `None`: neither has one.
fn release_text(changelog: &str, version: &str) -> Option<String> {
    let section = |name: &str| {
        let is_section =
            |part: &&str| part.lines().next().is_some_and(|heading| heading.trim() == name);
        let part = changelog.split("\n## ").skip(1).find(is_section)?;
        let body = part.split_once('\n').map_or("", |(_, body)| body).trim();
        (!body.is_empty()).then(|| format!("# knee {version}\n\n{body}\n"))
    };
    section("Unreleased").or_else(|| section(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_describes_itself() {
        let text = control("0.2.0", "amd64");
        assert!(text.contains("Version: 0.2.0\nArchitecture: amd64\n"), "{text}");
        assert!(text.ends_with(".\n") && text.contains("\n Finds where"), "{text}");
    }

    #[test]
    fn the_recipe_of_the_image_names_its_base() {
        let recipe = fs::read_to_string(repo::root().join("deploy/Containerfile")).unwrap();
        assert!(base_of(&recipe).unwrap().contains(":nonroot"), "{recipe}");
        assert_eq!(base_of("# FROM a\nFROM b:1 \nFROM c\n"), Some("b:1"));
        assert_eq!(base_of(""), None);
    }

    #[test]
    fn release_text_is_the_newest_section() {
        let text = |log: &str| release_text(log, "0.3.0");
        let of_version =
            "# C\n\n## Unreleased\n\n## 0.3.0\n\n### Added\n\n- a\n\n## 0.2.0\n\n- b\n";
        assert_eq!(text(of_version).unwrap(), "# knee 0.3.0\n\n### Added\n\n- a\n");
        let newer = of_version.replace("Unreleased\n", "Unreleased\n\n- c\n");
        assert_eq!(text(&newer).unwrap(), "# knee 0.3.0\n\n- c\n");
        assert_eq!(text("# C\n\n## 0.3.1\n\n- a\n"), None);
    }
}
