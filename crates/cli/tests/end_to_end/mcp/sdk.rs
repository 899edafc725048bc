//! A client that others wrote: the official SDK for Python.

use crate::support::{KneeServer, TempPath, knee, program};
use std::process::Command;

/// Lists the tools, measures, and reads a page. The SDK checks each answer against its schema.
const CLIENT: &str = r#"
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    env = {"XDG_DATA_HOME": sys.argv[3]}
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=env)
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            print(len(tools.tools))
            seen = []
            async def progress(done, total, message):
                seen.append(done)
            load = {"url": sys.argv[2], "rate": 20, "duration": "3s"}
            ran = await session.call_tool("run", load, progress_callback=progress)
            run = getattr(ran, "structured_content", None) or ran.structuredContent
            print(run["result"], len(seen) > 0, seen == sorted(seen))
            page = await session.call_tool("report", {"pointer": "/trials/0/outcomes"})
            page = getattr(page, "structured_content", None) or page.structuredContent
            print(sorted(page["value"]) == ["ok"])

asyncio.run(main())
"#;

#[test]
fn sdk_for_python_measures() {
    let Some(python) = program("python3") else {
        return;
    };
    let has_sdk = Command::new(&python).args(["-c", "import mcp"]).output().unwrap();
    if !has_sdk.status.success() {
        return println!("skipped: python3 has no package mcp");
    }
    let server = KneeServer::start(&[]);
    let data = TempPath::new("mcp-sdk");
    let binary = knee(&[]).get_program().to_owned();
    let mut command = Command::new(python);
    command.args(["-c", CLIENT]).arg(binary).arg(server.url()).arg(&data.0);
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "9\npassed True True\nTrue\n", "{output:?}");
    let _ = std::fs::remove_dir_all(&data.0);
}
