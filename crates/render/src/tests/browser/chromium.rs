//! Chromium without a window, driven over a pair of pipes by its DevTools protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// No answer takes as long, however busy the machine: what does hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the browser is called, as Debian and others name it.
const PROGRAMS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The shell gives the browser its ends of our pipes under the numbers that it looks for.
const START: &str = "exec 3<&0 4>&1 </dev/null >/dev/null 2>\"$0\"; exec \"$@\"";

/// A running browser; ended when dropped, and by itself where the test dies, as its pipe closes.
pub(super) struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    calls: u64,
    /// The page that commands go to.
    session: String,
    events: Vec<Value>,
    directory: PathBuf,
}

impl Chromium {
    /// Starts it; `None`, and a line that says so, where it is not installed. That is a failure
    /// where `CI` is set.
    pub(super) fn start() -> Option<Chromium> {
        let Some(program) = PROGRAMS.into_iter().find_map(find) else {
            let ci = std::env::var_os("CI").is_some();
            assert!(!ci, "chromium is missing: apt-get install chromium");
            println!("skipped: chromium is not installed");
            return None;
        };
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("knee-chromium-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", START])
            .arg(directory.join("log"))
            .arg(program)
            .arg(format!("--user-data-dir={}", directory.display()))
            .args(ARGUMENTS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut messages = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = mpsc::channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while messages.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).unwrap();
                message.clear();
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut browser = Chromium {
            child,
            to,
            from,
            calls: 0,
            session: String::new(),
            events: Vec::new(),
            directory,
        };
        browser.open_page();
        Some(browser)
    }

    fn open_page(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = &target["targetId"];
        let attached = json!({"targetId": target, "flatten": true});
        let attached = self.call("Target.attachToTarget", attached);
        self.session = attached["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Network", "Log", "Accessibility"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Sends a command and waits for its result.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        let sent = self.to.write_all(&bytes);
        sent.unwrap_or_else(|e| panic!("{method}: {e}: {}", self.log()));
        let answer = self.wait(method, |message| message["id"] == id);
        assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    #[track_caller]
    fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let Ok(message) = self.from.recv_timeout(left) else {
                panic!("no answer to {what}: {}", self.log());
            };
            let found = is_it(&message);
            if found {
                return message;
            }
            if message.get("method").is_some() {
                self.events.push(message);
            }
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The events of these names since the page was shown.
    pub(super) fn events(&self, names: &[&str]) -> Vec<&Value> {
        let is_one = |event: &&Value| names.iter().any(|name| event["method"] == *name);
        self.events.iter().filter(is_one).collect()
    }

    /// Shows a page in a window of this width, in a colour scheme (`light`, `dark`), and waits
    /// until it is there.
    #[track_caller]
    pub(super) fn show(&mut self, html: &str, width: u32, scheme: &str) {
        self.appear(width, scheme, "screen");
        let path = self.directory.join("page.html");
        std::fs::write(&path, html).unwrap();
        let url = format!("file://{}", path.display());
        self.events.clear();
        self.call("Page.navigate", json!({"url": url}));
        let has_loaded = |e: &Value| e["method"] == "Page.loadEventFired";
        if !self.events.iter().any(has_loaded) {
            self.wait("load", has_loaded);
        }
    }

    /// A width, a colour scheme and a medium (`screen`, `print`) for the page that is shown.
    #[track_caller]
    pub(super) fn appear(&mut self, width: u32, scheme: &str, medium: &str) {
        let window = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", window);
        let features = json!([
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]);
        let media = json!({"media": medium, "features": features});
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// What a JavaScript expression (or promise) becomes in the page.
    #[track_caller]
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let answer = self.call("Runtime.evaluate", parameters);
        let trouble = answer.get("exceptionDetails");
        assert!(trouble.is_none(), "{expression}: {trouble:?}");
        answer["result"]["value"].clone()
    }

    /// Moves the mouse there, in pixels of the window, with this button held (`none`, `left`).
    pub(super) fn mouse(&mut self, kind: &str, [x, y]: [f64; 2], button: &str) {
        let buttons = u32::from(button == "left");
        let event = json!({
            "type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1,
        });
        self.call("Input.dispatchMouseEvent", event);
    }

    /// Presses a key and lets it go. `code`: its number where it has one, as for Tab.
    pub(super) fn key(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a character.
    pub(super) fn character(&mut self, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({"type": kind, "key": text, "text": text});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The whole page as PNGs in base 64, each so tall at the most, in pixels.
    pub(super) fn screenshots(&mut self, height_max: f64) -> Vec<String> {
        let size = self.call("Page.getLayoutMetrics", json!({}));
        let size = &size["cssContentSize"];
        let whole = size["height"].as_f64().unwrap();
        let pieces = (whole / height_max).ceil() as u32;
        let tops = (0..pieces).map(|i| f64::from(i) * height_max);
        let shots = tops.map(|top| {
            let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": {
                "x": 0, "y": top, "width": size["width"], "height": height_max.min(whole - top),
                "scale": 1,
            }});
            let shot = self.call("Page.captureScreenshot", shot);
            shot["data"].as_str().unwrap().to_string()
        });
        let shots = shots.collect();
        // A picture of the whole page takes the scroll bars away.
        let shown = json!({"hidden": false});
        self.call("Emulation.setScrollbarsHidden", shown);
        shots
    }

    /// The page as a PDF, in base 64.
    pub(super) fn printed(&mut self) -> String {
        let printed = self.call("Page.printToPDF", json!({"printBackground": false}));
        printed["data"].as_str().unwrap().to_string()
    }
}

const ARGUMENTS: [&str; 11] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
];

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed. Its own children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What cannot be removed stays in the directory for temporary files.
        for _ in 0..10 {
            if std::fs::remove_dir_all(&self.directory).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).map(|folder| folder.join(program));
    folders.find(|file| file.is_file())
}
