//! The room for labels in a plot. Boxes are estimates in shares of the plot, as the width of the
//! page and of its letters is unknown.

use crate::plot::{Plot, Point, ReferenceAt, Shape};

/// Height of a line of words above and below its base line, in CSS pixels.
const LINE_PX: (f64, f64) = (12.0, 3.0);

/// Width of a letter beside an axis, in CSS pixels.
const LETTER_PX: f64 = 6.6;

/// An upper estimate of the width of bold text, in CSS pixels; the reader's font is unknown.
pub(super) fn bold_px(words: &str) -> f64 {
    let letter = |c| match c {
        'm' | 'w' | 'M' | 'W' | '%' => 12.5,
        'i' | 'l' | 'j' | 'I' | '.' | ',' | ':' | '\'' | '|' | ' ' => 4.6,
        'f' | 't' | 'r' | '(' | ')' | '/' => 6.0,
        _ => 8.4,
    };
    words.chars().map(letter).sum()
}

/// The box of a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct LabelBox {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LabelBox {
    /// The box of text between two positions on x, on this base line, in a plot of this height in
    /// CSS pixels.
    pub(super) fn at([near, far]: [f64; 2], baseline: f64, height_px: f64) -> LabelBox {
        LabelBox {
            left: near.min(far),
            right: near.max(far),
            top: baseline - LINE_PX.0 / height_px,
            bottom: baseline + LINE_PX.1 / height_px,
        }
    }

    /// Whether the box lies within the plot, extended by the share `beyond` at its right edge.
    pub(super) fn is_inside(&self, beyond: f64) -> bool {
        let across = self.left >= -0.005 && self.right <= 1.0 + beyond;
        across && self.top >= -0.005 && self.bottom <= 1.005
    }

    /// Whether a reference line crosses the box.
    pub(super) fn is_crossed(&self, plot: &Plot) -> bool {
        plot.references.iter().any(|reference| match reference.at {
            ReferenceAt::Y(y) => {
                let y = plot.y.position(y).map(|y| plot.depth_of(y));
                y.is_some_and(|y| (self.top..=self.bottom).contains(&y))
            }
            ReferenceAt::X(x) => plot.x.position(x).is_some_and(|x| self.reaches(x)),
        })
    }

    /// Whether this position on x is within the box.
    pub(super) fn reaches(&self, x: f64) -> bool {
        (self.left..=self.right).contains(&x)
    }

    /// The number of points and segments of the data within the box.
    pub(super) fn clutter(&self, plot: &Plot) -> usize {
        let drawn = plot.series.iter().map(|s| match &s.shape {
            Shape::Line(points) => self.on_line(plot, points, false),
            Shape::Step(points) => self.on_line(plot, points, true),
            _ => s.points().iter().filter(|p| self.holds(plot.place(p.x, p.y))).count(),
        });
        drawn.sum()
    }

    fn on_line(&self, plot: &Plot, points: &[Point], level: bool) -> usize {
        let places: Vec<_> = points.iter().map(|p| plot.place(p.x, p.y)).collect();
        let crossed = places.windows(2).filter(|pair| {
            let (Some((x1, y1)), Some((x2, y2))) = (pair[0], pair[1]) else {
                return false;
            };
            let y2 = if level { y1 } else { y2 };
            let steps = 1.0 + ((x2 - x1).abs() * 60.0).min(60.0);
            (0..=steps as usize).any(|i| {
                let share = i as f64 / steps;
                self.holds(Some((x1 + share * (x2 - x1), y1 + share * (y2 - y1))))
            })
        });
        crossed.count()
    }

    fn holds(&self, place: Option<(f64, f64)>) -> bool {
        place.is_some_and(|(x, y)| self.reaches(x) && (self.top..=self.bottom).contains(&y))
    }

    /// Whether two boxes overlap.
    pub(super) fn overlaps(&self, other: &LabelBox) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

/// Which words at these places along x fit in `width_px` CSS pixels. If they are `even`, every one,
/// every second one and so on. Otherwise each that fits beside the one before it.
pub(super) fn fitting(words: &[(f64, String)], even: bool, width_px: f64) -> Vec<bool> {
    if !even {
        return fitting_at_stride(words, 1, width_px);
    }
    let strides = [1, 2, 4, 5].into_iter();
    let mut fits = strides.map(|stride| (stride, fitting_at_stride(words, stride, width_px)));
    let all_fit = |(stride, fits): &(usize, Vec<bool>)| fits.iter().step_by(*stride).all(|f| *f);
    let fitting = fits.find(all_fit).map(|(_, fits)| fits);
    fitting.unwrap_or_else(|| fitting_at_stride(words, words.len().max(1), width_px))
}

fn fitting_at_stride(words: &[(f64, String)], stride: usize, width_px: f64) -> Vec<bool> {
    let mut end = f64::NEG_INFINITY;
    let fits = words.iter().enumerate().map(|(i, (at, text))| {
        let half = (text.chars().count() as f64 * LETTER_PX + 10.0) / 2.0;
        let fits = i % stride == 0 && at * width_px - half >= end;
        if fits {
            end = at * width_px + half;
        }
        fits
    });
    fits.collect()
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn marks_are_thinned_out_evenly_where_they_are_even() {
        let words: Vec<(f64, String)> =
            (0..9).map(|i| (f64::from(i) / 8.0, "1,000".into())).collect();
        let shown = |even, width| {
            let shown = fitting(&words, even, width).into_iter().map(|f| if f { 'x' } else { '.' });
            shown.collect::<String>()
        };
        assert_eq!(shown(true, 800.0), "xxxxxxxxx");
        assert_eq!(shown(true, 250.0), "x.x.x.x.x");
        assert_eq!(shown(true, 100.0), "x...x...x");
        assert_eq!(shown(true, 1.0), "x........");
        assert_eq!(shown(false, 250.0), "x.x.x.x.x");
    }
}
