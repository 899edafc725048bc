//! `knee mcp`: a server of the Model Context Protocol, so that agents measure with knee.

mod answer;
mod child;
mod tools;

use super::raw::RawArgs;
use crate::args::{parse_positive, parse_rate_max};
use crate::confined::ConfinedLimits;
use crate::failure::{Exit, Failure};
use crate::stdio::Notes;
use child::{EndedChild, RunningChild};
use clap::{Args, Command, CommandFactory};
use knee_fleet::Cidr;
use knee_load::time::Nanos;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Map;
use std::io::IsTerminal;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tools::{KneeTool, TOOLS, ToolOutput};

/// Serve the Model Context Protocol, so that agents measure with knee
///
/// A client such as an editor or an agent starts it, and writes to its standard input. It calls
/// tools: run, sweep, compare_targets, compare, report, history, explain and others. Each is a
/// command of knee with a choice of its options. One measurement is made at a time; further ones
/// wait for their turn.
///
/// It sends load to loopback only, until --allow-target names networks. A host name is permitted if
/// all its addresses are. Tools read files below the working folder, and write none. Runs are kept
/// in the history. It ends when its standard input does, and ends what it measures.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  knee mcp --allow-target 10.0.0.0/8 --rate-max 2000",
    after_long_help = "Examples:\n  \
        knee mcp\n  \
        knee mcp --allow-target 10.0.0.0/8 --rate-max 2000 --duration-max 2m\n\n\
        A client starts it: its configuration names the command knee and the argument mcp.\n\n\
        Exit codes: 0 standard input ended; 2 bad arguments."
)]
pub struct RawMcp {
    /// Network that load may be sent to, such as 10.0.0.0/8; repeatable. Loopback needs none
    #[arg(long, value_name = "CIDR", value_parser = Cidr::parse)]
    allow_target: Vec<Cidr>,

    /// Most operations per second, whoever asks [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_rate_max)]
    rate_max: Option<f64>,

    /// Longest time of a measurement; one that takes longer is ended, and reported so far
    #[arg(long, value_name = "T", default_value = "10m", value_parser = parse_positive)]
    duration_max: Nanos,

    /// Permit scenarios to start the programs that their steps name under 'exec'. No limit holds
    /// for these programs
    #[arg(long)]
    allow_exec: bool,
}

/// Longest message of a client, in bytes. Longer ones are skipped.
const MESSAGE_MAX: usize = 1 << 20;

/// Serves until the client closes standard input.
pub fn execute(raw: RawMcp) -> Result<Exit, Failure> {
    let folder = std::env::current_dir().and_then(|folder| folder.canonicalize());
    let folder = folder
        .map_err(|e| Failure::input(format!("the working folder cannot be looked up: {e}")))?;
    let limits = ConfinedLimits {
        targets: raw.allow_target.iter().map(Cidr::to_string).collect(),
        rate_max: raw.rate_max,
        duration_max: raw.duration_max,
        folder,
    };
    let server = KneeServer::new(&RawArgs::command(), limits, raw.allow_exec)?;
    if std::io::stdin().is_terminal() {
        let line =
            "a client is to start this, and to write messages to standard input; Ctrl-D ends it";
        Notes { quiet: false }.tell(line);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|e| Failure::input(format!("the server cannot be started: {e}")))?;
    let ended = runtime.block_on(serve(server));
    // The thread that reads standard input may still wait.
    runtime.shutdown_background();
    ended.map(|()| Exit::Fine)
}

async fn serve(server: KneeServer) -> Result<(), Failure> {
    let closed = CancellationToken::new();
    let input = ClientInput { stdin: tokio::io::stdin(), closed: closed.clone() };
    let transport =
        AsyncRwTransport::new_server(input, tokio::io::stdout()).with_max_line_length(MESSAGE_MAX);
    match rmcp::service::serve_server_with_ct(server, transport, closed.clone()).await {
        Ok(serving) => {
            let ended = serving.waiting().await;
            ended.map(drop).map_err(|e| Failure::input(format!("the server failed: {e}")))
        }
        Err(_) if closed.is_cancelled() => Ok(()),
        Err(_) => Err(Failure::input("no session was begun: expected the request 'initialize'")),
    }
}

/// Standard input. Its end cancels all that is under way.
struct ClientInput {
    stdin: Stdin,
    closed: CancellationToken,
}

impl AsyncRead for ClientInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stdin).poll_read(context, buffer);
        let is_over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_over {
            self.closed.cancel();
        }
        read
    }
}

/// Most calls at once, those that wait for their turn among them. Further ones are refused.
const CALLS_MAX: usize = 32;

/// Time limit of a tool that sends no load.
const READ_MAX: Duration = Duration::from_secs(60);

/// The tools of knee, within limits.
pub(super) struct KneeServer {
    tools: Vec<Tool>,
    limits: ConfinedLimits,
    allows_exec: bool,
    /// Held while something is measured: two measurements would disturb each other.
    turn: Mutex<()>,
    /// Room for further calls.
    room: Semaphore,
}

impl KneeServer {
    /// A server of all tools; `knee`: the commands that they are made of.
    pub(super) fn new(
        knee: &Command,
        limits: ConfinedLimits,
        allows_exec: bool,
    ) -> Result<KneeServer, Failure> {
        let tools = TOOLS.iter().map(|tool| described(tool, knee));
        let tools = tools.collect::<Result<_, _>>().map_err(Failure::input)?;
        let room = Semaphore::new(CALLS_MAX);
        Ok(KneeServer { tools, limits, allows_exec, turn: Mutex::new(()), room })
    }

    /// Does what is asked for. Measurements wait for each other, in the order of their calls.
    async fn call(
        &self,
        tool: &KneeTool,
        arguments: &Map<String, serde_json::Value>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let Ok(_room) = self.room.try_acquire() else {
            let line = format!("error: {CALLS_MAX} calls are under way: call again once one ends");
            return answer::error(&line);
        };
        let asked = tool.words(arguments).and_then(|words| Ok((words, tool.place(arguments)?)));
        let (mut words, place) = match asked {
            Ok(asked) => asked,
            Err(line) => return answer::error(&format!("error: {line}")),
        };
        if self.allows_exec && tool.output == ToolOutput::Measurement {
            words.push("--allow-exec".to_owned());
        }
        match self.run(tool, &words, context).await {
            Ok(ended) => answer::of(tool.output, &ended, place),
            Err(e) => answer::error(&format!("error: {} could not be run: {e}", tool.name)),
        }
    }

    async fn run(
        &self,
        tool: &KneeTool,
        words: &[String],
        context: RequestContext<RoleServer>,
    ) -> std::io::Result<EndedChild> {
        let mut progress = Progress::of(&context);
        let stop = context.ct;
        if !tool.output.is_measured() {
            let child = RunningChild::start(words, &self.limits)?;
            return child.end(READ_MAX, &stop, |_| {}).await;
        }
        let turn = self.turn.lock();
        tokio::pin!(turn);
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let _turn = loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(std::io::Error::other("it was cancelled")),
                turn = &mut turn => break turn,
                _ = ticks.tick() => progress.tell("waits for the measurement before it".to_owned()),
            }
        };
        let child = RunningChild::start(words, &self.limits)?;
        let limit = Duration::from_nanos(self.limits.duration_max.0);
        child.end(limit, &stop, |line| progress.tell(line)).await
    }
}

/// A tool as clients see it.
fn described(tool: &KneeTool, knee: &Command) -> Result<Tool, String> {
    let hints = ToolAnnotations::new()
        .read_only(!tool.output.is_measured())
        .destructive(false)
        .open_world(tool.output.is_measured());
    let mut described = Tool::new(tool.name, tool.description, tool.input_schema(knee)?)
        .with_title(tool.title)
        .with_annotations(hints);
    described.output_schema = answer::output_schema(tool.output).map(Arc::new);
    Ok(described)
}

impl ServerHandler for KneeServer {
    fn get_info(&self) -> ServerConfig {
        let limits = &self.limits;
        let mut targets = vec!["loopback".to_owned()];
        targets.extend(limits.targets.iter().cloned());
        let rate = limits.rate_max.map(|max| format!(" at most {max} operations per second,"));
        let instructions = format!(
            "knee measures what servers carry: throughput, response times, capacity. It may send \
             load to {} only,{} for at most {} per measurement. One measurement is made at a \
             time; further calls wait. Trust figures of VALID results only; follow the next steps \
             of findings, whose options --NAME are arguments NAME here. Files are read below {}.",
            targets.join(", "),
            rate.unwrap_or_default(),
            limits.duration_max,
            limits.folder.display()
        );
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("knee", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = KneeTool::named(&request.name).ok_or_else(|| {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            let line = format!("unknown tool '{}': expected {}", request.name, names.join(", "));
            ErrorData::invalid_params(line, None)
        })?;
        let arguments = request.arguments.unwrap_or_default();
        Ok(self.call(tool, &arguments, context).await.into())
    }
}

/// Tells the client how far a call is, if it asked for that.
struct Progress {
    to: Option<(ProgressToken, Peer<RoleServer>)>,
    began: Instant,
    /// The note on its way. A client that does not read gets no further ones.
    sending: Option<JoinHandle<()>>,
}

impl Progress {
    fn of(context: &RequestContext<RoleServer>) -> Progress {
        let token = context.meta.get_progress_token();
        Progress {
            to: token.map(|token| (token, context.peer.clone())),
            began: Instant::now(),
            sending: None,
        }
    }

    /// Sends a note; the progress is the time since the call, in seconds.
    fn tell(&mut self, line: String) {
        let is_sending = self.sending.as_ref().is_some_and(|sending| !sending.is_finished());
        let Some((token, peer)) = self.to.clone().filter(|_| !is_sending) else {
            return;
        };
        let seconds = self.began.elapsed().as_secs_f64();
        let note = ProgressNotificationParam::new(token, seconds).with_message(line);
        self.sending = Some(tokio::spawn(async move {
            // The end of the session ends the call, too.
            let _ = peer.notify_progress(note).await;
        }));
    }
}
