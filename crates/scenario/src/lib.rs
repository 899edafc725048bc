//! Reads scenario files, in YAML or JSON, into requests with holes and a plan without names. Files
//! and environment variables come through [`ScenarioInputs`].
//!
//! `tree` reads a file into nodes with their positions. `fields` reads maps by the keys that
//! `scenario.schema.json` has. `template` reads `${…}` by the `names` of a session. `holed` is text
//! with holes, `locator` URLs with holes. `request` and `response` are the halves of a step, `exec`
//! its program. `session` puts steps together in a `draft`, `flow` those around others. `grpc`
//! reads what services of gRPC are.
//!
//! `access_log` reads a server's log as a recording: `line` reads a line (`text` by what its parts
//! are, `pattern` by a given format), `order` sorts by time. `import` reads the files of other
//! tools as a scenario.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod access_log;
mod body;
mod condition;
mod data;
mod draft;
mod exec;
mod fault;
mod fields;
mod flow;
#[cfg(feature = "grpc")]
pub mod grpc;
mod holed;
pub mod import;
mod load;
mod locator;
mod messages;
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
pub use response::status as parse_status;
pub use schema::schema;
pub use single::Expected;
pub use stages::{LoadStages, RateStage};
pub use tree::FILE_MAX;

/// A commented scenario that runs against `knee serve http --app shop`.
pub const EXAMPLE: &str = include_str!("example.yaml");

use draft::{PlanBuilder, RequestDefaults};
use fault::Read;
use fields::{Fields, duration, named};
use knee_core::threshold::Threshold;
use knee_load::session::SessionPlan;
use knee_load::spec::{ClientCertificate, HttpRequest, ParseError, Url};
use knee_load::time::Nanos;

use target::TargetOrigins;

/// Files, programs and variables that a scenario may name.
pub trait ScenarioInputs {
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
    /// The servers that requests go to, at least one. Their numbers are those of the plan.
    pub servers: Vec<Url>,
    /// The requests of all steps.
    pub requests: Vec<HttpRequest>,
    /// What users do with them.
    pub plan: SessionPlan,
    /// The load that the file asks for.
    pub load: Option<ScenarioLoad>,
    /// The thresholds of the file.
    pub fail_if: Vec<Threshold>,
    /// The metrics that a script makes, or k6 has, and the figures of each that thresholds may ask
    /// for.
    pub metrics: Vec<(String, &'static [&'static str])>,
    /// The time limit of operations that have none of their own.
    pub timeout: Option<Nanos>,
    /// What holds for all connections.
    pub connections: ConnectionSettings,
}

/// Settings of connections, which a script may have beside its users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Whether each request has a new connection.
    pub no_reuse: bool,
    /// Whether any certificate is accepted.
    pub any_certificate: bool,
    /// Addresses of names, as `--resolve` takes them.
    pub resolve: Vec<String>,
    /// Certificates that a server may ask for.
    pub certificates: Vec<DomainCertificate>,
}

/// A certificate for the servers of some domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCertificate {
    /// Names of hosts, `*.` for any below; empty: of all servers.
    pub domains: Vec<String>,
    /// The certificate.
    pub certificate: ClientCertificate,
}

impl DomainCertificate {
    /// Whether it is for this host.
    pub fn fits(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let fits = |domain: &String| match domain.to_ascii_lowercase().strip_prefix('*') {
            Some(above) => above.starts_with('.') && host.ends_with(above),
            None => domain.eq_ignore_ascii_case(&host),
        };
        self.domains.is_empty() || self.domains.iter().any(fits)
    }
}

/// Reads a scenario; `file` is what errors call it.
///
/// # Errors
/// One line: `FILE:LINE:COLUMN: what is wrong: what would be right`.
pub fn parse_scenario(
    bytes: &[u8],
    file: &str,
    inputs: &mut dyn ScenarioInputs,
) -> Result<Scenario, ParseError> {
    let mut inputs = RememberingInputs { inputs, environment: Vec::new() };
    let mut scenario = read(bytes, &mut inputs).map_err(|fault| fault.in_file(file))?;
    scenario.plan.environment = inputs.environment;
    Ok(scenario)
}

/// Inputs that remember which variables were read: their values may be secrets.
struct RememberingInputs<'a> {
    inputs: &'a mut dyn ScenarioInputs,
    environment: Vec<(String, String)>,
}

impl ScenarioInputs for RememberingInputs<'_> {
    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.inputs.file(name)
    }

    fn program(&mut self, name: &str) -> Result<(String, String), String> {
        self.inputs.program(name)
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        let value = self.inputs.variable(name)?;
        self.environment.push((name.to_owned(), value.clone()));
        Some(value)
    }
}

fn read(bytes: &[u8], inputs: &mut dyn ScenarioInputs) -> Read<Scenario> {
    let root = tree::parse(bytes)?;
    let fields = Fields::read(&root, schema::SCENARIO)?;
    let origins = TargetOrigins::read(fields.need("target")?, inputs)?;
    let defaults = fields.read_key("defaults", |node| Fields::read(node, schema::DEFAULTS))?;
    let default = |key| defaults.as_ref().and_then(|fields| fields.get(key));
    let headers = default("headers").map(|node| named(node, "headers: {Name: value}"));
    let mut compiler = PlanBuilder {
        origins: &origins,
        common: RequestDefaults {
            headers: headers.transpose()?.unwrap_or_default(),
            redirects: session::redirects(default("redirects"), 0)?,
        },
        requests: Vec::new(),
        plan: SessionPlan {
            data: fields.read_key("data", |node| data::read(node, inputs))?.unwrap_or_default(),
            ..SessionPlan::default()
        },
        bytes: 0,
        given: Vec::new(),
        inputs,
    };
    let around = ["setup", "teardown"].map(|key| fields.get(key));
    compiler.sessions(fields.need("sessions")?, around)?;
    let PlanBuilder { requests, plan, .. } = compiler;
    let fail_if = fields.read_key("fail_if", |node| load::thresholds(node, &plan))?;
    Ok(Scenario {
        servers: origins.urls().map(|(_, url)| url.clone()).collect(),
        requests,
        load: fields.read_key("load", load::read)?,
        fail_if: fail_if.unwrap_or_default(),
        metrics: Vec::new(),
        timeout: default("timeout").map(duration).transpose()?,
        plan,
        connections: ConnectionSettings::default(),
    })
}
