//! `knee mcp` as its clients see it: lines of bytes over the real binary.

mod limits;
mod measures;
mod protocol;
mod sdk;

use crate::support::{Ended, TempPath, knee};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// No answer takes as long, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server with a folder and a history of its own.
struct Session {
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    folder: PathBuf,
    next: u64,
}

impl Session {
    /// A server with these options that has been greeted.
    fn start(name: &str, options: &[&str]) -> Session {
        let mut session = Session::silent(name, options);
        let id = session.send("initialize", greeting("2025-11-25"));
        let greeted = session.answer(id);
        assert_eq!(greeted["result"]["protocolVersion"], "2025-11-25", "{greeted}");
        session.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// The same before it has been greeted.
    fn silent(name: &str, options: &[&str]) -> Session {
        let folder = TempPath::new(&format!("mcp-{name}")).0.clone();
        fs::create_dir_all(&folder).unwrap();
        let mut command = knee(&[&["mcp"], options].concat());
        command.current_dir(&folder).env("XDG_DATA_HOME", folder.join("data"));
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, messages) = mpsc::channel();
        // Whatever is no JSON there fails the test: it waits for what is.
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line);
                let message =
                    message.unwrap_or_else(|e| json!({"no JSON": format!("{e}: {line}")}));
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Session { child: Some(child), stdin, messages, folder, next: 0 }
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn write(&mut self, message: &Value) {
        self.write_bytes(format!("{message}\n").as_bytes());
    }

    /// Sends a request; its id.
    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message.
    fn message(&self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("an answer");
        assert!(message.get("no JSON").is_none(), "{message}");
        message
    }

    /// The answer to a request. What comes before it is skipped.
    fn answer(&self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
            assert!(message.get("method").is_some(), "{message} in place of the answer to {id}");
        }
    }

    /// Calls a tool, and does not wait. Its progress comes under its id.
    fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        let token = self.next + 1;
        let call = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": token}});
        self.send("tools/call", call)
    }

    /// What a tool answers.
    fn ask(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.call(tool, arguments);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// What a tool answers that succeeds: its value, and its text.
    fn told(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let result = self.ask(tool, arguments);
        assert_ne!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (result["structuredContent"].clone(), text)
    }

    /// The line with which a tool refuses.
    fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.ask(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(result.get("structuredContent").is_none(), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a note on the progress of a call that has these words.
    fn progress(&self, id: u64, words: &str) {
        loop {
            let message = self.message();
            assert_eq!(message["method"], "notifications/progress", "{message}");
            let text = message["params"]["message"].as_str().unwrap();
            if message["params"]["progressToken"] == id && text.contains(words) {
                return;
            }
        }
    }

    /// Closes its input, and waits for its end.
    fn close(mut self) -> Ended {
        self.stdin = None;
        Ended::of(self.child.take().unwrap())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself, which the test has noticed.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The parameters of `initialize`.
fn greeting(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    })
}

/// Processes with this in their command line.
fn processes_with(words: &str) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = folders.filter_map(|folder| fs::read(folder.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(words)).collect()
}

fn wait_until_none_with(words: &str) {
    let begin = Instant::now();
    while !processes_with(words).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "left: {:?}", processes_with(words));
        thread::sleep(Duration::from_millis(10));
    }
}
