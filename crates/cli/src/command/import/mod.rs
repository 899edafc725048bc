//! `knee import`: a scenario out of what other programs know of a load.

mod log;

use crate::args::SecretArgs;
use crate::failure::{Exit, Failure, of_command_line, of_command_line_and};
use crate::{input, stdio};
use clap::{Args, Subcommand};
use knee_load::secrets::Secrets;
use knee_load::spec::Url;
use knee_scenario::import::{self, ImportedScenario};

/// Make a scenario file from a curl line, a HAR, an OpenAPI description or files of other tools
///
/// The scenario goes to standard output, or to -o FILE. What could not be taken over is a comment
/// in it, '# left out: …', and a line on standard error.
#[derive(Args, Clone, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        knee import curl \"curl 'https://example.com/' -H 'accept: */*'\"\n  \
        knee import har shop.har -o shop.yaml"
)]
pub struct RawImport {
    #[command(subcommand)]
    format: RawFormat,
}

#[derive(Clone, Debug, Subcommand)]
enum RawFormat {
    /// Import a command line of curl
    ///
    /// One argument is the whole line, with its quotes; '-' reads it from standard input. Several
    /// are its words, after '--'.
    #[command(after_help = "Example:\n  \
        knee import curl \"curl 'https://example.com/' -H 'accept: */*' --compressed\"")]
    Curl {
        #[command(flatten)]
        out: Out,

        /// The line
        #[arg(value_name = "LINE")]
        line: Vec<String>,
    },

    /// Import a browser's recording: HTTP Archive (HAR)
    ///
    /// The requests to the server of the first one, or to those of --target, become the steps of a
    /// session, with the pauses between them.
    #[command(after_help = "Example:\n  \
        knee import har shop.har -o shop.yaml\n  \
        knee import har shop.har --target https://shop.test --target https://api.shop.test")]
    Har {
        #[command(flatten)]
        files: FileToFile,

        /// A server whose requests are taken, repeatable; paths alone are of the first [default:
        /// that of the first request]
        #[arg(long, value_name = "URL", value_parser = Url::parse)]
        target: Vec<Url>,
    },

    /// Import the operations of an OpenAPI description, in JSON or YAML
    ///
    /// Each operation becomes a step. Its values are the examples and defaults of the description,
    /// or made by its schemas.
    #[command(after_help = "Example:\n  \
        knee import openapi openapi.yaml --target http://127.0.0.1:8080 -o api.yaml")]
    Openapi {
        #[command(flatten)]
        files: FileToFile,

        /// Server in place of the description's first one
        #[arg(long, value_name = "URL")]
        target: Option<String>,
    },

    /// Print the line that runs a k6 script: scripts run as they are
    #[command(after_help = "Example:\n  \
        knee import k6 script.js")]
    K6 {
        /// The script
        #[arg(value_name = "FILE")]
        file: String,
    },

    /// Import a JMeter test plan
    ///
    /// Thread groups become sessions with their load, HTTP requests become steps. Extractors and
    /// assertions are what a step takes and expects. What has no place is named with its line.
    #[command(after_help = "Example:\n  \
        knee import jmeter plan.jmx -o plan.yaml")]
    Jmeter(FileToFile),

    /// Make a recording out of a server's access log, which knee run sends again at its own times
    ///
    /// Lines are of the combined or common format, or objects of JSON as nginx, Caddy and Traefik
    /// write them. Methods, paths, times and users are taken over, and no bodies. Lines that are no
    /// request are named. Any length is read in bounded memory.
    #[command(after_help = "Example:\n  \
        knee import log access.log --target http://127.0.0.1:8080 -o access.jsonl")]
    Log(Box<log::LogArgs>),
}

// Comments, as clap would take what stands above a group of options as the help of its command.

// Where the scenario goes.
#[derive(Args, Clone, Debug)]
struct Out {
    /// Scenario file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,

    #[command(flatten)]
    secrets: SecretArgs,
}

// What is imported, and where the scenario goes.
#[derive(Args, Clone, Debug)]
struct FileToFile {
    #[command(flatten)]
    out: Out,

    /// What to import, up to 256 MiB; '-' is standard input
    #[arg(value_name = "FILE")]
    file: String,
}

/// Imports, and says what was left out.
pub fn execute(raw: RawImport) -> Result<Exit, Failure> {
    let mut read = |file: &str| input::read(file).map_err(|e| e.line);
    let (out, source, secrets, imported) = match raw.format {
        RawFormat::Curl { out, line } => {
            let mut secrets = of_command_line();
            let imported = match &line[..] {
                [] => {
                    let wrong = "is missing: give one in quotes, or its words after '--'";
                    return Err(Failure::argument("LINE", wrong));
                }
                [line] if line == "-" => {
                    let line = input::read_text("-")?;
                    let imported = import::curl_line(&line, &mut read);
                    secrets.learn_words(&[line]);
                    imported
                }
                [line] => import::curl_line(line, &mut read),
                words => import::curl_words(words, &mut read),
            };
            let imported =
                imported.map_err(|e| Failure::argument("LINE", e).without_secrets(&secrets))?;
            (out, "a line of curl".to_owned(), secrets, imported)
        }
        RawFormat::Har { files, target } => files.import(|bytes| import::har(bytes, &target))?,
        RawFormat::Openapi { files, target } => {
            let mut beside = input::files_below(&files.file);
            files.import(|bytes| import::openapi(bytes, target.as_deref(), &mut beside))?
        }
        RawFormat::K6 { file } => {
            stdio::write(|out| writeln!(out, "knee run {file}"))?;
            return Ok(Exit::Fine);
        }
        RawFormat::Jmeter(files) => files.import(import::jmeter)?,
        RawFormat::Log(log) => return log.execute(),
    };
    deliver(&out, &source, &secrets, imported)?;
    Ok(Exit::Fine)
}

impl FileToFile {
    /// What the file becomes, behind where it goes, what the file is called and its secrets.
    fn import<E: std::fmt::Display>(
        self,
        import: impl FnOnce(&[u8]) -> Result<ImportedScenario, E>,
    ) -> Result<(Out, String, Secrets, ImportedScenario), Failure> {
        let FileToFile { out, file } = self;
        let bytes = input::read(&file)?;
        let secrets = of_command_line_and(&String::from_utf8_lossy(&bytes));
        let imported =
            import(&bytes).map_err(|e| Failure::argument(&file, e).without_secrets(&secrets))?;
        let name = match file.as_str() {
            "-" => "standard input".to_owned(),
            file => file.to_owned(),
        };
        Ok((out, name, secrets, imported))
    }
}

/// Writes the scenario file, and says what was left out; neither has secrets.
fn deliver(
    out: &Out,
    source: &str,
    secrets: &Secrets,
    mut imported: ImportedScenario,
) -> Result<(), Failure> {
    for what in &mut imported.left_out {
        *what = secrets.hide(what).into_owned();
    }
    let own = out.secrets.secrets();
    if own.hides() {
        imported = imported.without_credentials(own.names());
    }
    let yaml = imported.to_yaml(source);
    stdio::write_to("--output", out.output.as_deref(), |out| out.write_all(yaml.as_bytes()))?;
    for what in imported.left_out {
        stdio::say(&format!("left out: {what}"));
    }
    Ok(())
}
