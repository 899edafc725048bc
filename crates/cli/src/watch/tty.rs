//! The terminal while the live view is up, on standard error: an alternate screen, keys as they are
//! pressed. However it ends, the terminal is put back as it was.

use crate::terminal;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use knee_engine::sys::terminal::{self as sys_terminal, Input};
use knee_render::live::LiveScreen;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, BufWriter, Stderr, Write};
use std::sync::Once;
use std::thread;
use std::time::Duration;

/// To the alternate screen, and no cursor (xterm's control sequences, DECSET 1049 and 25).
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// The reverse, with all colours reset.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal, taken.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
    area: Rect,
    has_keys: bool,
}

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// To end early: q.
    Quit,
    /// Ctrl-C, which does not come as a signal here.
    Interrupt,
    /// Ctrl-Z, which does not either.
    Suspend,
    /// Ctrl-L: draw anew.
    Redraw,
    /// v
    View,
    /// ?
    Help,
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
        sys_terminal::remember(LEAVE)?;
        let tty = Tty { terminal, area, has_keys: true };
        // Dropped, and so put back, where it fails.
        crossterm::terminal::enable_raw_mode()?;
        io::stderr().write_all(ENTER)?;
        Ok(tty)
    }

    /// Shows this, as large as the terminal is by now. What has not changed is not written again.
    pub fn draw(&mut self, screen: LiveScreen<'_>) -> io::Result<()> {
        // Somebody panicked, and it was put back: nothing may be drawn over the message.
        if !sys_terminal::is_to_be_put_back() {
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
        if sys_terminal::is_to_be_put_back() {
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
        if !self.has_keys {
            thread::sleep(patience);
            return None;
        }
        // The library reads a terminal that has hung up without end.
        self.has_keys = sys_terminal::wait(patience) != Some(Input::HungUp);
        if !self.has_keys {
            return None;
        }
        // It may hold keys that came with earlier ones.
        let is_there = event::poll(Duration::ZERO);
        match is_there.and_then(|is_there| is_there.then(event::read).transpose()) {
            Ok(event) => event.and_then(meaning),
            Err(_) => {
                self.has_keys = false;
                None
            }
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        put_back();
    }
}

fn put_back() {
    sys_terminal::put_back();
    if sys_terminal::is_foreground() {
        // The library's own account of it; the settings are back already.
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

static PUT_BACK_ON_PANIC: Once = Once::new();

fn put_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if sys_terminal::is_to_be_put_back() {
            put_back();
        }
        before(info);
    }));
}

fn area() -> Option<Rect> {
    terminal::stderr_size().map(|(columns, rows)| Rect::new(0, 0, columns, rows))
}

fn meaning(event: Event) -> Option<ViewKey> {
    let Event::Key(key) = event else {
        return None;
    };
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, control) {
        (KeyCode::Char('c'), true) => Some(ViewKey::Interrupt),
        (KeyCode::Char('z'), true) => Some(ViewKey::Suspend),
        (KeyCode::Char('l'), true) => Some(ViewKey::Redraw),
        (KeyCode::Char('q'), false) => Some(ViewKey::Quit),
        (KeyCode::Char('v'), false) => Some(ViewKey::View),
        (KeyCode::Char('?'), false) => Some(ViewKey::Help),
        _ => None,
    }
}
