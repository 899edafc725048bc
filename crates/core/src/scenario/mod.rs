//! The scenario file: what users do, in YAML or JSON, read into requests with holes and a plan that
//! knows no names. Text comes in, values go out; files and environment variables are asked for.
//!
//! `tree` reads the file into nodes that know where they stand, `keys` has all keys that there are,
//! `fields` reads maps by them. `template` reads what is in `${…}`, `names` has what may stand
//! there, `holed` has text with holes, `locator` has URLs with holes. `request` and `response` are
//! the two halves of a step, `exec` is what a program gives it, `session` puts steps together.

mod body;
mod condition;
mod data;
mod exec;
mod fault;
mod fields;
mod holed;
mod keys;
mod load;
mod locator;
mod names;
mod request;
mod response;
mod schema;
mod session;
mod single;
mod stages;
mod target;
mod template;
#[cfg(test)]
mod tests;
mod tree;

pub use load::{ScenarioLoad, check_part};
pub use schema::schema;
pub use single::{Expected, parse_status};
pub use stages::Stage;
pub use tree::FILE_MAX;

/// A commented scenario that runs against `knee serve http --app shop`.
pub const EXAMPLE: &str = include_str!("example.yaml");

use crate::session::SessionPlan;
use crate::spec::{Endpoint, HttpRequest, ParseError};
use crate::threshold::Threshold;
use crate::time::Nanos;
use fault::Read;
use fields::{Fields, duration, named};
use session::{Common, Compiler};
use target::Origin;

/// What a scenario may ask for while it is read.
pub trait Surroundings {
    /// The bytes of a file below the folder of the scenario; `name` is relative and has no `..`.
    ///
    /// # Errors
    /// What is wrong, in one line without the name.
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String>;

    /// A program below the folder of the scenario: its file, with all links followed, and that
    /// folder; `name` is relative and has no `..`.
    ///
    /// # Errors
    /// What is wrong, in one line without the name.
    fn program(&mut self, name: &str) -> Result<(String, String), String>;

    /// The value of an environment variable, if it is set.
    fn variable(&mut self, name: &str) -> Option<String>;
}

/// What a scenario file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Where all requests go.
    pub endpoint: Endpoint,
    /// Whether its connections are to be secured.
    pub is_secure: bool,
    /// The requests of all steps.
    pub requests: Vec<HttpRequest>,
    /// What users do with them.
    pub plan: SessionPlan,
    /// The load that the file asks for.
    pub load: Option<ScenarioLoad>,
    /// The thresholds of the file.
    pub fail_if: Vec<Threshold>,
    /// The time limit of operations that have none of their own.
    pub timeout: Option<Nanos>,
}

/// Reads a scenario; `file` is what errors call it.
///
/// # Errors
/// One line: `FILE:LINE:COLUMN: what is wrong: what would be right`.
pub fn parse_scenario(
    bytes: &[u8],
    file: &str,
    around: &mut dyn Surroundings,
) -> Result<Scenario, ParseError> {
    read(bytes, around).map_err(|fault| fault.told(file))
}

fn read(bytes: &[u8], around: &mut dyn Surroundings) -> Read<Scenario> {
    let root = tree::parse(bytes)?;
    let fields = Fields::read(&root, &keys::SCENARIO)?;
    let origin = Origin::read(fields.need("target")?, around)?;
    let defaults = fields
        .get("defaults")
        .map(|node| Fields::read(node, &keys::DEFAULTS));
    let defaults = defaults.transpose()?;
    let default = |key| defaults.as_ref().and_then(|fields| fields.get(key));
    let headers = default("headers").map(|node| named(node, "headers: {Name: value}"));
    let mut compiler = Compiler {
        origin: &origin,
        common: Common {
            headers: headers.transpose()?.unwrap_or_default(),
            redirects: session::redirects(default("redirects"), 0)?,
        },
        requests: Vec::new(),
        plan: SessionPlan {
            data: data::read(fields.get("data"), around)?,
            ..SessionPlan::default()
        },
        bytes: 0,
        around,
    };
    compiler.sessions(fields.need("sessions")?)?;
    let Compiler { requests, plan, .. } = compiler;
    let fail_if = fields
        .get("fail_if")
        .map(|node| load::thresholds(node, &plan));
    Ok(Scenario {
        endpoint: origin.url.endpoint().clone(),
        is_secure: origin.url.is_secure(),
        requests,
        load: fields.get("load").map(load::read).transpose()?,
        fail_if: fail_if.transpose()?.unwrap_or_default(),
        timeout: default("timeout").map(duration).transpose()?,
        plan,
    })
}
