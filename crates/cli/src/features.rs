//! Parts of knee that a build may leave out, by Cargo features.

use crate::failure::Failure;
use std::ffi::OsString;

/// A Cargo feature of this crate.
pub struct Feature {
    /// What a build with it has.
    what: &'static str,
    is_built: bool,
    /// Its commands.
    commands: &'static [&'static str],
    /// Its options, without the dashes.
    options: &'static [&'static str],
}

/// Load from many machines.
pub const FLEET: Feature = Feature {
    what: "fleets",
    is_built: cfg!(feature = "fleet"),
    commands: &["agent", "fleet"],
    options: &["fleet", "fleet-wait", "agents", "agents-min", "allow-loss"],
};

/// Calls of gRPC.
pub const GRPC: Feature = Feature {
    what: "gRPC",
    is_built: cfg!(feature = "grpc"),
    commands: &["serve grpc"],
    options: &["proto", "import-path", "descriptor-set"],
};

/// Users written in JavaScript.
pub const SCRIPTS: Feature = Feature {
    what: "scripts",
    is_built: cfg!(feature = "scripts"),
    commands: &[],
    options: &[
        "env",
        "script-scenario",
        "script-host",
        "script-memory",
        "script-time",
        "script-body",
    ],
};

impl Feature {
    /// Why `argument` cannot be used in a build without this feature.
    pub fn missing(&self, argument: &str) -> Failure {
        let what = self.what;
        Failure::argument(
            argument,
            format!(
                "this build of knee has no {what}: install it with 'cargo install --locked \
                 --all-features --path crates/cli'"
            ),
        )
    }
}

/// All of them.
pub const FEATURES: [Feature; 3] = [FLEET, GRPC, SCRIPTS];

/// Why a command line cannot be used, where it has a command or an option of a feature that is left
/// out. `argv`: the program's name first.
pub fn left_out(argv: &[OsString], features: &[Feature]) -> Option<Failure> {
    let words: Vec<&str> = argv.iter().skip(1).map_while(|word| word.to_str()).collect();
    let command = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let options = words.iter().take_while(|word| **word != "--");
    let options: Vec<&str> =
        options.filter_map(|word| word.strip_prefix("--")?.split('=').next()).collect();
    features.iter().filter(|feature| !feature.is_built).find_map(|feature| {
        let is_named = |name: &&&str| command == **name || words.first() == Some(*name);
        let option = feature.options.iter().find(|name| options.contains(name));
        let option = option.map(|name| feature.missing(&format!("--{name}")));
        option.or_else(|| feature.commands.iter().find(is_named).map(|name| feature.missing(name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::raw::RawArgs;
    use clap::CommandFactory;

    #[test]
    fn what_a_build_lacks_is_named() {
        let lacking = FEATURES.map(|feature| Feature { is_built: false, ..feature });
        for (line, expected) in [
            ("knee agent --nats nats://h", "agent: this build of knee has no fleets: install it"),
            ("knee fleet ls", "fleet: this build of knee has no fleets: "),
            ("knee run http://h/ --fleet=nats://h", "--fleet: this build of knee has no fleets: "),
            ("knee serve grpc", "serve grpc: this build of knee has no gRPC: "),
            ("knee run a.js --env A=b", "--env: this build of knee has no scripts: "),
            ("knee run -- curl --proto =https http://h/", ""),
            ("knee serve http", ""),
        ] {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let failure = left_out(&argv, &lacking).map(|failure| failure.line);
            assert_eq!(failure.is_some(), !expected.is_empty(), "{line}");
            assert!(failure.unwrap_or_default().starts_with(expected), "{line}");
            assert_eq!(left_out(&argv, &FEATURES.map(built)), None, "{line}");
        }
    }

    fn built(feature: Feature) -> Feature {
        Feature { is_built: true, ..feature }
    }

    #[test]
    fn options_of_features_exist() {
        let knee = RawArgs::command();
        let run = knee.find_subcommand("run").unwrap();
        for feature in FEATURES.iter().filter(|feature| feature.is_built) {
            for name in feature.options {
                assert!(run.get_arguments().any(|a| a.get_long() == Some(*name)), "--{name}");
            }
        }
    }
}
