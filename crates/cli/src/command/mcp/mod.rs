//! `knee mcp`: a server of the Model Context Protocol, so that agents measure with knee.

mod answer;
mod arguments;
mod child;
mod pages;
mod server;
mod tools;

use super::raw::RawArgs;
use crate::args::{parse_positive, parse_rate_max};
use crate::confined::ConfinedLimits;
use crate::failure::{Exit, Failure};
use crate::notes::Notes;
use clap::{Args, CommandFactory};
use knee_fleet::Cidr;
use knee_load::time::Nanos;
use rmcp::transport::async_rw::AsyncRwTransport;
use server::KneeServer;
use std::io::IsTerminal;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio_util::sync::CancellationToken;

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
