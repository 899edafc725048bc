//! Uses what was made as a user would. It happens apart from this system: with an empty
//! `/usr/local`, or over a layer that is gone afterwards.

use super::Release;
use super::platform::Platform;
use crate::tools;
use std::path::Path;
use std::process::{Command, Output};

/// What was used, and what could not be.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) passed: Vec<String>,
    pub(super) left_out: Vec<String>,
}

/// A check: a shell script with the programs that it needs.
struct Check {
    title: String,
    needs: Vec<&'static str>,
    /// In new mount and network namespaces, as their root.
    is_apart: bool,
    script: String,
}

/// Defines `measured`, which runs a command that has to end with 0 (good) or 3 (INVALID, as on a
/// busy machine).
const MEASURED: &str = "measured() { \"$@\" || [ $? = 3 ]; }\n";

/// Options that make a sweep short.
const SHORT: &str = "--vusers 1,2 -d 300ms --warmup 100ms";

/// Does every check that is possible here.
///
/// # Errors
/// What a check found.
pub(super) fn all(release: &Release) -> Result<Checks, String> {
    let readme = std::fs::read_to_string(release.root.join("README.md"))
        .map_err(|e| format!("README.md: {e}"))?;
    let lines = ReadmeLines::of(&readme).ok_or("README.md does not say how to install")?;
    let here = Platform::here();
    let mut todo = vec![checksums(), archive(&lines, here), pages(), completions()];
    if release.dist.join(release.package_file(here)).is_file() {
        todo.push(package_by_apt(&lines, here));
    }
    todo.extend(release.image_builder.map(|builder| image(release, builder)));
    for other in release.built.iter().filter(|platform| !platform.is_here()) {
        todo.push(emulated(release, *other));
    }
    let mut checks = Checks::default();
    for check in todo {
        match check.obstacle() {
            Some(why) => checks.left_out.push(format!("{}: {why}", check.title)),
            None => {
                println!("check: {}", check.title);
                check.run(&release.dist, &release.name(here))?;
                checks.passed.push(check.title);
            }
        }
    }
    Ok(checks)
}

impl Check {
    /// Why it cannot be done here.
    fn obstacle(&self) -> Option<String> {
        let missing = self.needs.iter().find(|program| tools::find(program).is_none());
        if let Some(program) = missing {
            return Some(format!("{program} is not installed"));
        }
        let permitted = !self.is_apart || sh(true, "true", Path::new("/"), "").is_ok();
        (!permitted).then(|| "namespaces are not permitted to this user".to_owned())
    }

    fn run(&self, folder: &Path, name: &str) -> Result<(), String> {
        sh(self.is_apart, &self.script, folder, name)
            .map_err(|why| format!("{} failed:\n{why}", self.title))
    }
}

/// Runs a script in the folder of packages, where `$NAME` is the folder of this platform's archive.
fn sh(is_apart: bool, script: &str, folder: &Path, name: &str) -> Result<(), String> {
    let prefix: &[&str] = match (is_apart, nix::unistd::Uid::effective().is_root()) {
        (false, _) => &[],
        (true, true) => &["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"],
        (true, false) => {
            &["unshare", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child"]
        }
    };
    let words = [prefix, &["bash", "-euc", script]].concat();
    let run =
        Command::new(words[0]).args(&words[1..]).current_dir(folder).env("NAME", name).output();
    let Output { status, stdout, stderr } = run.map_err(|e| format!("{}: {e}", words[0]))?;
    if status.success() {
        return Ok(());
    }
    let output = [stdout, stderr].concat();
    Err(format!("{status}\n{}", String::from_utf8_lossy(&output)))
}

/// What the README says, word by word.
#[derive(Debug, PartialEq)]
struct ReadmeLines<'a> {
    /// Unpacks the archive.
    archive: &'a str,
    /// Installs the Debian package.
    package: &'a str,
    /// The first command.
    command: &'a str,
}

impl ReadmeLines<'_> {
    fn of(readme: &str) -> Option<ReadmeLines<'_>> {
        let line = |start: &str| readme.lines().find_map(|line| line.strip_prefix(start));
        let whole = |start: &str| readme.lines().find(|line| line.starts_with(start));
        Some(ReadmeLines {
            archive: whole("tar -xzf knee-")?,
            package: whole("sudo apt install ./knee_")?,
            command: line("$ ")?,
        })
    }
}

fn checksums() -> Check {
    Check {
        title: "checksums".to_owned(),
        needs: vec!["sha256sum"],
        is_apart: false,
        script: "sha256sum --quiet --check SHA256SUMS".to_owned(),
    }
}

/// A line of the README for this platform. `sudo` is a function, as the script is root already.
fn on(platform: Platform, line: &str) -> String {
    let line = line.replace("x86_64", platform.processor).replace("amd64", platform.debian);
    format!("sudo() {{ \"$@\"; }}\n{line}\n")
}

/// The README's line unpacks the archive in an empty folder and copies it to an empty `/usr/local`.
/// Its first command runs there, in a short size, against the built-in server.
fn archive(lines: &ReadmeLines<'_>, here: Platform) -> Check {
    let install = on(here, lines.archive);
    let command = lines.command;
    Check {
        title: format!("{}, then {}", lines.archive, lines.command),
        needs: vec!["unshare", "ip", "tar", "mount"],
        is_apart: true,
        script: format!(
            "{MEASURED}ip link set lo up\nmount -t tmpfs none /usr/local\n\
             mount -t tmpfs none /mnt && cp ./*.tar.gz /mnt && cd /mnt\n{install}\
             hash -r\n[ \"$(command -v knee)\" = /usr/local/bin/knee ]\nexport HOME=/mnt\n\
             knee serve http --listen 127.0.0.1:8080 & sleep 1\n\
             measured {command} {SHORT}\nkill $!\n"
        ),
    }
}

/// The README's line installs the package on this system, in a layer that is gone afterwards.
fn package_by_apt(lines: &ReadmeLines<'_>, here: Platform) -> Check {
    let install = on(here, lines.package);
    let inside = format!(
        "cd /packages\n{install}\n[ \"$(dpkg-query -W -f '${{Status}}' knee)\" = 'install ok \
         installed' ]\n/usr/bin/knee --version\n"
    );
    Check {
        title: lines.package.to_owned(),
        needs: vec!["unshare", "apt", "chroot", "mount"],
        is_apart: true,
        script: format!(
            "mount -t tmpfs none /mnt && cd /mnt\nmkdir upper work merged\n\
             mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work none merged\n\
             mkdir merged/packages && cp \"$OLDPWD\"/*.deb merged/packages\n\
             mount -t proc none merged/proc\nmount --rbind /dev merged/dev\n\
             export DEBIAN_FRONTEND=noninteractive\n\
             chroot merged bash -euc {}\n",
            quoted(&inside)
        ),
    }
}

/// The first command in a container of the image.
fn image(release: &Release, builder: &'static str) -> Check {
    let tag = release.image_tag();
    let run = if builder == "buildah" {
        format!(
            "container=$(buildah from --pull-never {tag})\n\
             trap 'buildah rm \"$container\"' EXIT\n\
             measured buildah run --isolation chroot \"$container\" -- /usr/local/bin/knee"
        )
    } else {
        format!("measured {builder} run --rm {tag}")
    };
    Check {
        title: format!("the image {tag} by {builder}"),
        needs: vec![builder],
        is_apart: false,
        script: format!("{MEASURED}{run} sweep --no-save {SHORT}\n"),
    }
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn pages() -> Check {
    let by_man = "for page in \"$NAME\"/share/man/man1/*.1; do\n\
                  said=$(man --warnings -l \"$page\" 2>&1 >/dev/null)\n\
                  [ -z \"$said\" ] || { echo \"$page: $said\"; exit 1; }\ndone\n";
    let (program, script) = match tools::find("mandoc") {
        Some(_) => ("mandoc", "mandoc -T lint -W error \"$NAME\"/share/man/man1/*.1"),
        None => ("man", by_man),
    };
    Check {
        title: "manual pages".to_owned(),
        needs: vec![program],
        is_apart: false,
        script: script.to_owned(),
    }
}

/// bash completes the name of a command; zsh and fish read their files, where they are installed.
fn completions() -> Check {
    Check {
        title: "completions".to_owned(),
        needs: vec!["bash"],
        is_apart: false,
        script: "source \"$NAME/share/bash-completion/completions/knee\"\n\
                 COMP_WORDS=(knee swe) COMP_CWORD=1\n\
                 complete_with=$(complete -p knee | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
                 \"$complete_with\" knee swe knee\n[ \"${COMPREPLY[*]}\" = sweep ]\n\
                 if command -v zsh; then zsh -n \"$NAME/share/zsh/site-functions/_knee\"; fi\n\
                 if command -v fish; then\n\
                 fish -n \"$NAME/share/fish/vendor_completions.d/knee.fish\"; fi\n"
            .to_owned(),
    }
}

/// The binary of another platform, taken from its package, under an emulator of its processor.
fn emulated(release: &Release, other: Platform) -> Check {
    let emulator = match other.processor {
        "aarch64" => "qemu-aarch64-static",
        _ => "qemu-x86_64-static",
    };
    Check {
        title: format!("{} under {emulator}", release.package_file(other)),
        needs: vec!["unshare", "ip", "mount", "dpkg-deb", emulator],
        is_apart: true,
        script: format!(
            "{MEASURED}ip link set lo up\nmount -t tmpfs none /mnt\ndpkg-deb -x {} /mnt\n\
             cmp /mnt/usr/bin/knee {}/bin/knee\n{emulator} /mnt/usr/bin/knee --version\n\
             measured {emulator} /mnt/usr/bin/knee sweep --no-save {SHORT}\n",
            release.package_file(other),
            release.name(other)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installation_of_the_readme_is_what_is_checked() {
        let readme = std::fs::read_to_string(crate::repo::root().join("README.md")).unwrap();
        let lines = ReadmeLines::of(&readme).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        for line in [lines.archive, lines.package] {
            assert!(line.contains(version), "{line}");
        }
        assert!(lines.command.starts_with("knee "), "{}", lines.command);
        assert_eq!(ReadmeLines::of("# knee\n"), None);
    }

    #[test]
    fn a_script_that_fails_says_what_it_printed() {
        let here = Path::new("/");
        assert_eq!(sh(false, "[ \"$NAME\" = a ]", here, "a"), Ok(()));
        let failed = sh(false, "echo out; echo err >&2; exit 7", here, "").unwrap_err();
        for word in ["7", "out", "err"] {
            assert!(failed.contains(word), "{failed}");
        }
    }

    #[test]
    fn quotes_of_a_script_survive_the_shell() {
        let script = format!("[ {} = \"it's\" ]", quoted("it's"));
        assert_eq!(sh(false, &script, Path::new("/"), ""), Ok(()));
    }
}
