//! The live view, and the terminal while it is up. The thread that watches the experiment only
//! hands over what happened; another one draws, a few times a second, and takes the keys. However
//! it ends, the terminal is put back as it was.
//!
//! It draws ten times a second at most; `render::live` folds events into a state and draws that
//! into cells, without terminal and clock, so that tests draw it too. A second Ctrl-C ends the
//! process in the signal handler. So `sys::terminal` of the engine keeps what the terminal was
//! like, and puts it back there.

use super::view_keys::{ViewKey, keys};
use super::{ExperimentStart, UpcomingTrial, Watcher};
use crate::stdio::{Notes, stderr_size};
use knee_core::trial::report::TrialReport;
use knee_engine::interrupt;
use knee_engine::sys::terminal::{self, Input};
use knee_load::measure::{Histogram, Interval};
use knee_load::time::Nanos;
use knee_render::live::{LatencyView, LiveScreen, LiveState, LiveTrial, TerminalStyle};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::collections::VecDeque;
use std::io::{self, BufWriter, Stderr, Write};
use std::sync::Once;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval of reading keys and events; the shortest time between two pictures.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Interval of showing the elapsed time, where nothing else has changed.
const TICK: Duration = Duration::from_millis(250);
/// Time that the view has to end where its terminal has hung up.
const HUNG_UP_PATIENCE: Duration = Duration::from_secs(1);
/// After an absence of this length the process was stopped, and others may have used the terminal.
const ABSENCE: Duration = Duration::from_secs(2);

/// The view, up until the experiment ends or this is dropped.
pub struct LiveView {
    /// Intervals come at most ten times a second. So the queue stays short without a bound, and the
    /// sender never waits, even where the terminal does.
    events: Sender<ViewEvent>,
    drawing: Option<JoinHandle<()>>,
    notes: Notes,
    /// Said meanwhile: it follows on the main screen, where it stays.
    held: Vec<String>,
}

/// What happened.
enum ViewEvent {
    Opens(Box<LiveState>),
    Begins(LiveTrial),
    Interval(Box<Interval>, Vec<(u16, u64)>),
    Ends(Option<Box<TrialReport>>),
    Note(String),
}

impl LiveView {
    /// Takes the terminal.
    ///
    /// # Errors
    /// It cannot be taken.
    pub fn start(style: TerminalStyle, notes: Notes) -> io::Result<LiveView> {
        let tty = Tty::enter()?;
        let (events, happened) = mpsc::channel();
        let drawing = thread::Builder::new()
            .name("live view".to_string())
            .spawn(move || View::new(tty, style).run(&happened))?;
        Ok(LiveView { events, drawing: Some(drawing), notes, held: Vec::new() })
    }

    fn send(&self, what: ViewEvent) {
        // Where the view is gone nobody is to be told.
        let _ = self.events.send(what);
    }
}

impl Watcher for LiveView {
    fn opens(&mut self, start: &ExperimentStart) {
        let of = |key: &&str| start.spec.get(*key).and_then(|v| v.as_str());
        let target = ["target", "url", "targets"].iter().find_map(of);
        let live = Box::new(LiveState::new(&start.command.to_string(), target.unwrap_or_default()));
        self.send(ViewEvent::Opens(live));
    }

    fn trial_begins(&mut self, _: usize, upcoming: &UpcomingTrial) {
        self.send(ViewEvent::Begins(upcoming.live.clone()));
    }

    fn interval(&mut self, interval: &Interval, response: &Histogram) {
        self.send(ViewEvent::Interval(Box::new(interval.clone()), response.bands()));
    }

    fn trial_ends(&mut self, trial: Option<&TrialReport>) {
        self.send(ViewEvent::Ends(trial.cloned().map(Box::new)));
    }

    /// Restores the terminal, and prints the lines that were held back meanwhile.
    fn end(&mut self) {
        let Some(drawing) = self.drawing.take() else {
            return;
        };
        let (nobody, _) = mpsc::channel();
        // The view ends when nobody can tell it anything any more.
        self.events = nobody;
        let begun = Instant::now();
        while !drawing.is_finished() {
            // A read of keys that has begun before a terminal hangs up may never end.
            if begun.elapsed() > HUNG_UP_PATIENCE && terminal::has_hung_up() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = drawing.join();
        for line in self.held.drain(..) {
            self.notes.say(&line);
        }
    }

    fn note(&mut self, line: &str) -> bool {
        if self.drawing.is_none() {
            return false;
        }
        self.send(ViewEvent::Note(line.to_string()));
        self.held.push(line.to_string());
        true
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the drawing thread has.
struct View {
    tty: Tty,
    style: TerminalStyle,
    live: LiveState,
    began: Instant,
    pane: LatencyView,
    help: bool,
    hint: &'static str,
}

impl View {
    fn new(tty: Tty, style: TerminalStyle) -> View {
        View {
            tty,
            style,
            live: LiveState::default(),
            began: Instant::now(),
            pane: LatencyView::default(),
            help: false,
            hint: "",
        }
    }

    fn run(mut self, happened: &Receiver<ViewEvent>) {
        let mut drawn: Option<Instant> = None;
        let (mut was_ours, mut looked) = (true, Instant::now());
        loop {
            let mut is_changed = false;
            while let Some(what) = match happened.try_recv() {
                Ok(what) => Some(what),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            } {
                self.take_in(what);
                is_changed = true;
            }
            // In the background the terminal is somebody else's, and whoever touches it is stopped.
            let is_ours = terminal::is_foreground();
            if is_ours && (!was_ours || looked.elapsed() > ABSENCE) {
                self.tty.start_anew();
                is_changed = true;
            }
            (was_ours, looked) = (is_ours, Instant::now());
            if !is_ours {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            is_changed |= self.tty.is_resized();
            let is_due = drawn.is_none_or(|d| d.elapsed() >= TICK);
            if is_changed || is_due {
                drawn = Some(Instant::now());
                self.draw();
            }
            let mut key = self.tty.key(LOOK_EVERY);
            // What a key does is seen at once.
            drawn = drawn.filter(|_| key.is_none());
            while let Some(pressed) = key {
                self.on_key(pressed);
                key = self.tty.key(Duration::ZERO);
            }
        }
    }

    fn take_in(&mut self, what: ViewEvent) {
        match what {
            ViewEvent::Opens(live) => self.live = *live,
            ViewEvent::Begins(trial) => {
                self.began = Instant::now();
                self.live.trial_begins(trial);
            }
            ViewEvent::Interval(interval, bands) => self.live.interval(*interval, bands),
            ViewEvent::Ends(report) => self.live.trial_ends(report.as_deref()),
            ViewEvent::Note(line) => self.live.note(&line),
        }
    }

    fn on_key(&mut self, key: ViewKey) {
        self.hint = "";
        match key {
            // In raw mode it comes as a key, and does here what the signal does.
            ViewKey::Interrupt => interrupt::raise(),
            ViewKey::Quit => interrupt::end(),
            ViewKey::Suspend => {
                self.hint = "suspended, knee would offer no load: q ends early instead";
            }
            ViewKey::Redraw => self.tty.start_anew(),
            ViewKey::View => self.pane = self.pane.other(),
            ViewKey::Help => self.help = !self.help,
        }
    }

    fn draw(&mut self) {
        let elapsed = self.began.elapsed().as_nanos();
        let screen = LiveScreen {
            live: &self.live,
            style: self.style,
            elapsed: Nanos(u64::try_from(elapsed).unwrap_or(u64::MAX)),
            stopping: interrupt::is_raised(),
            pane: self.pane,
            help: self.help,
            hint: self.hint,
        };
        // A terminal that is gone (SIGHUP follows) cannot be told anything.
        let _ = self.tty.draw(screen);
    }
}

/// To the alternate screen, and no cursor (xterm's control sequences, DECSET 1049 and 25).
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// The reverse, with all colours reset.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal, taken.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    area: Rect,
    has_keys: bool,
    /// Keys that came with one that was returned.
    keys: VecDeque<ViewKey>,
}

impl Tty {
    /// Takes it.
    ///
    /// # Errors
    /// It cannot be written to or read from; it is then as it was.
    pub fn enter() -> io::Result<Tty> {
        PUT_BACK_ON_PANIC.call_once(put_back_on_panic);
        let area = area().ok_or_else(|| io::Error::other("no terminal"))?;
        let options = TerminalOptions { viewport: Viewport::Fixed(area) };
        let backend = CrosstermBackend::new(BufWriter::new(io::stderr()));
        let terminal = Terminal::with_options(backend, options)?;
        terminal::remember(LEAVE)?;
        let tty = Tty { terminal, area, has_keys: true, keys: VecDeque::new() };
        // Dropped, and so put back, where it fails.
        crossterm::terminal::enable_raw_mode()?;
        io::stderr().write_all(ENTER)?;
        Ok(tty)
    }

    /// Shows this, as large as the terminal is by now. What has not changed is not written again.
    pub fn draw(&mut self, screen: LiveScreen<'_>) -> io::Result<()> {
        // Somebody panicked, and it was put back: nothing may be drawn over the message.
        if !terminal::is_to_be_put_back() {
            return Ok(());
        }
        let draw = |frame: &mut ratatui::Frame<'_>| frame.render_widget(screen, frame.area());
        self.terminal.draw(draw)?;
        Ok(())
    }

    /// Whether the terminal has another size than when it was last asked; the next picture fills
    /// it.
    pub fn is_resized(&mut self) -> bool {
        let Some(area) = area().filter(|a| *a != self.area) else {
            return false;
        };
        self.area = area;
        self.terminal.resize(area).is_ok()
    }

    /// After a stop of the process, or where something else has written: from an empty screen.
    pub fn start_anew(&mut self) {
        if terminal::is_to_be_put_back() {
            // It may have been given other settings meanwhile.
            let _ = crossterm::terminal::disable_raw_mode();
            let _ = crossterm::terminal::enable_raw_mode();
            let _ = io::stderr().write_all(ENTER);
            // Not `clear`, which asks the terminal where its cursor is and waits for the answer.
            let _ = self.terminal.resize(self.area);
        }
    }

    /// The next key that means something, within this time.
    pub fn key(&mut self, patience: Duration) -> Option<ViewKey> {
        if self.keys.is_empty() {
            self.await_keys(patience);
        }
        self.keys.pop_front()
    }

    fn await_keys(&mut self, patience: Duration) {
        if !self.has_keys {
            return thread::sleep(patience);
        }
        let mut bytes = [0; 64];
        match terminal::read(patience, &mut bytes) {
            Some(Input::Bytes(count)) => self.keys.extend(keys(&bytes[..count])),
            Some(Input::HungUp) => self.has_keys = false,
            None => {}
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        put_back();
    }
}

fn put_back() {
    terminal::put_back();
    if terminal::is_foreground() {
        // The library's own account of it; the settings are back already.
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

static PUT_BACK_ON_PANIC: Once = Once::new();

fn put_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if terminal::is_to_be_put_back() {
            put_back();
        }
        before(info);
    }));
}

fn area() -> Option<Rect> {
    stderr_size().map(|(columns, rows)| Rect::new(0, 0, columns, rows))
}
