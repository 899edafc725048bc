//! The abilities of a terminal: colours and characters.

use crate::document::line::{Ink, Line, cleaned};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// The abilities of a terminal. Colour is never the only sign of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Colours, of the sixteen that every terminal has.
    pub color: bool,
    /// Characters beyond ASCII.
    pub unicode: bool,
}

impl TerminalStyle {
    /// Chooses by whether characters beyond ASCII may be used.
    pub(super) fn pick<T>(self, unicode: T, ascii: T) -> T {
        if self.unicode { unicode } else { ascii }
    }

    /// The style of text with this role.
    pub(super) fn style(self, ink: Ink) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        if !self.color {
            return match ink {
                Ink::Strong | Ink::Good | Ink::Warn | Ink::Bad => bold,
                Ink::Dim => plain.add_modifier(Modifier::DIM),
                Ink::Plain | Ink::Data | Ink::Guide => plain,
            };
        }
        match ink {
            Ink::Plain => plain,
            Ink::Strong => bold,
            Ink::Dim => plain.add_modifier(Modifier::DIM),
            Ink::Good => bold.fg(Color::Green),
            Ink::Warn => bold.fg(Color::Yellow),
            Ink::Bad => bold.fg(Color::Red),
            Ink::Data => plain.fg(Color::Cyan),
            Ink::Guide => plain.fg(Color::Magenta),
        }
    }

    /// Character and style of a cell of the heat map; `heat` is 1 to 4.
    pub(super) fn heat(self, heat: usize) -> (char, Style) {
        let symbols = self.pick(['░', '▒', '▓', '█'], ['.', ':', '+', '#']);
        let colors = [Color::Blue, Color::Cyan, Color::Yellow, Color::LightRed];
        let at = heat.clamp(1, 4) - 1;
        let plain = Style::new();
        let style = if self.color { plain.fg(colors[at]) } else { plain };
        (symbols[at], style)
    }

    /// A cell filled from below, in eighths from 0 to 8.
    pub(super) fn filled(self, eighths: usize) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '|', '|', '#', '#'];
        self.pick(BLOCKS, ASCII)[eighths.min(8)]
    }

    /// Writes a line in a row of the area, cut to its width.
    pub(super) fn write(self, buffer: &mut Buffer, area: Rect, row: usize, line: &Line) {
        let Ok(row) = u16::try_from(row) else {
            return;
        };
        if row >= area.height {
            return;
        }
        let y = area.y + row;
        let mut x = area.x;
        for (ink, text) in line.pieces() {
            let text = cleaned(text, self.unicode).replace(crate::number::TIE, " ");
            let left = area.right().saturating_sub(x);
            (x, _) = buffer.set_stringn(x, y, text, left.into(), self.style(*ink));
        }
    }

    /// Puts one character.
    pub(super) fn put(self, buffer: &mut Buffer, (x, y): (u16, u16), symbol: char, style: Style) {
        if let Some(cell) = buffer.cell_mut((x, y)) {
            cell.set_char(symbol).set_style(style);
        }
    }

    /// Writes a heading: the name in a rule as wide as the area, with a remark at its end.
    pub(super) fn heading(self, buffer: &mut Buffer, area: Rect, name: &str, remark: &str) {
        let rule = self.pick("─", "-");
        let mut line = Line::of(Ink::Dim, format!("{rule}{rule} "));
        line.push(Ink::Strong, name);
        line.push(Ink::Plain, " ");
        let end = match remark {
            "" => String::new(),
            remark => format!(" {remark} {rule}"),
        };
        let used = line.width() + end.chars().count();
        let fill = usize::from(area.width).saturating_sub(used);
        line.push(Ink::Dim, rule.repeat(fill) + &end);
        self.write(buffer, area, 0, &line);
    }
}
