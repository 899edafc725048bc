//! Labels within a plot: names of lines at their ends, of reference lines, of points; the legend.
//!
//! No two labels overlap, and none stands on a reference line, at any width of the plot. Without
//! room in the plot a name stands in the legend, and a label of a point is left out, as the table
//! has it.

use super::label_box::{LabelBox, bold_px};
use super::{PlotMargins, cell_class, classes, percent, tone_class};
use crate::html::markup::Markup;
use crate::plot::{Mark, Plot, PlotSeries, Reference, ReferenceAt, Shape, Tone};

/// Least distance of two names at the side, in CSS pixels.
const SIDE_GAP_PX: f64 = 14.0;

/// Height of a row of names above a plot whose categories go up the side, in CSS pixels.
pub(super) const ROW_ABOVE_PX: usize = 16;

/// A line that ends before this share of the width has its name at its end within the plot.
const EARLY: f64 = 0.93;

/// The width of a figure from which text in brackets is shown, in CSS pixels.
const BRACKETS_PX: usize = 441;

/// The widest plot, in CSS pixels.
const WIDEST_PX: f64 = 1_100.0;

/// The position of a label: shares from the left and from the top, and an offset in pixels right
/// and down. With a negative offset the label ends at that position.
type Anchor = (f64, f64, i32, i32);

/// The name of a line, beside its end.
#[derive(Debug)]
pub(super) struct SideLabel {
    /// The name.
    pub name: String,
    /// Position as a share from the top.
    pub from_top: f64,
    /// Its colour.
    pub tone: Tone,
}

/// The names of several lines of a plot, moved apart so that they do not overlap; none if they
/// exceed its height.
pub(super) fn side_labels(plot: &Plot) -> Vec<SideLabel> {
    let mut labels: Vec<SideLabel> = Vec::new();
    for series in plot.series.iter().filter(|s| plot.is_named_aside(s)) {
        let Some(position) = plot.last_position(series) else {
            continue;
        };
        labels.push(SideLabel {
            name: series.name.clone(),
            from_top: plot.depth_of(position),
            tone: series.tone,
        });
    }
    let height = f64::from(plot.height.max(1));
    if (labels.len().saturating_sub(1)) as f64 * SIDE_GAP_PX > height {
        return Vec::new();
    }
    // To a millionth of the height, as floating-point numbers have no order of their own.
    labels.sort_by_key(|label| (label.from_top * 1e6) as i64);
    move_apart(&mut labels, SIDE_GAP_PX / height);
    labels
}

/// Moves labels downwards to the least distance, then upwards from the bottom.
fn move_apart(labels: &mut [SideLabel], gap: f64) {
    for i in 1..labels.len() {
        let least = labels[i - 1].from_top + gap;
        labels[i].from_top = labels[i].from_top.max(least);
    }
    let mut most = 1.0;
    for label in labels.iter_mut().rev() {
        label.from_top = label.from_top.min(most);
        most = label.from_top - gap;
    }
}

/// A label at its place within a plot.
#[derive(Debug)]
pub(super) struct PlacedLabel {
    corner: Anchor,
    tone: Tone,
    words: String,
}

/// All labels of a plot.
#[derive(Debug, Default)]
pub(super) struct PlotLabels {
    /// Beside the right edge.
    pub side: Vec<SideLabel>,
    inner: Vec<PlacedLabel>,
    /// Names of lines in the legend: the class of the line, and the name.
    listed: Vec<(String, String)>,
    taken: [Vec<LabelBox>; 2],
}

impl PlotLabels {
    /// Places the labels of a plot with these margins, the most important first: reference lines,
    /// lines, points.
    pub(super) fn of(plot: &Plot, margins: &PlotMargins, side: Vec<SideLabel>) -> PlotLabels {
        let mut labels = PlotLabels::default();
        let aside = plot.series.iter().filter(|s| plot.is_named_aside(s));
        if side.is_empty() {
            labels.listed = aside.map(|s| (classes(s), s.name.clone())).collect();
        }
        for label in &side {
            let at = (1.0, label.from_top, 6, 4);
            for (taken, room) in labels.taken.iter_mut().zip(rooms(plot, margins, at, &label.name))
            {
                taken.push(room);
            }
        }
        labels.side = side;
        let mut above = 0;
        for reference in &plot.references {
            let class = format!("ref {}", tone_class(reference.tone));
            match plot.place_above(reference, above) {
                Some(corner) => {
                    above += 1;
                    labels.put(corner, reference.tone, &reference.label);
                }
                None => {
                    let corners = plot.corners_at(reference);
                    let corner = labels.find(plot, margins, &corners, &reference.label);
                    labels.put_or_list(corner, reference.tone, &reference.label, class);
                }
            }
        }
        for series in &plot.series {
            if let Some((x, y)) = plot.early_end(series) {
                // Around the end of the line, the nearest first.
                let near = [(-6, 16), (-6, -6), (6, 16), (6, -6), (8, 4), (-8, 4)];
                let far = [(-6, 30), (-6, -20), (6, 30), (6, -20)];
                let corners = near.into_iter().chain(far).map(|(dx, dy)| (x, y, dx, dy));
                let corners: Vec<Anchor> = corners.collect();
                let corner = labels.find(plot, margins, &corners, &series.name);
                labels.put_or_list(corner, series.tone, &series.name, classes(series));
            }
        }
        for series in &plot.series {
            labels.add_labels_of_points(plot, margins, series);
        }
        labels
    }

    fn add_labels_of_points(&mut self, plot: &Plot, margins: &PlotMargins, series: &PlotSeries) {
        let lying = matches!(series.shape, Shape::Bars(..)) && plot.y.is_of_categories();
        for (point, label) in series.points().iter().zip(&series.labels) {
            let Some((x, y)) = plot.place(point.x, point.y) else {
                continue;
            };
            if lying {
                // Beside the end of its bar, which has a row of its own, or beside a line that
                // would pass through it.
                let [narrow, _] = rooms(plot, margins, (x, y, 5, 4), label);
                let places = plot.references.iter().filter_map(|r| match r.at {
                    ReferenceAt::X(x) => plot.x.position(x),
                    ReferenceAt::Y(_) => None,
                });
                let x = places.filter(|x| narrow.reaches(*x)).fold(x, f64::max);
                self.put((x, y, 5, 4), series.tone, label);
                continue;
            }
            let corners = [(8, -5), (-8, -5), (8, 16), (-8, 16)].map(|(dx, dy)| (x, y, dx, dy));
            if let Some(corner) = self.find(plot, margins, &corners, label) {
                self.put(corner, series.tone, label);
            }
        }
    }

    /// Takes the position that is free at every width and covers the fewest data.
    fn find(
        &mut self,
        plot: &Plot,
        margins: &PlotMargins,
        corners: &[Anchor],
        words: &str,
    ) -> Option<Anchor> {
        let is_free = |corner: &&Anchor| {
            let rooms = rooms(plot, margins, **corner, words);
            let mut widths = rooms.iter().zip(&self.taken).zip(margins.beyond());
            widths.all(|((room, taken), beyond)| {
                let overlaps = taken.iter().any(|other| other.overlaps(room));
                room.is_inside(beyond) && !overlaps && !room.is_crossed(plot)
            })
        };
        let clutter = |corner: &&Anchor| rooms(plot, margins, **corner, words)[0].clutter(plot);
        let corner = *corners.iter().filter(is_free).min_by_key(clutter)?;
        for (taken, room) in self.taken.iter_mut().zip(rooms(plot, margins, corner, words)) {
            taken.push(room);
        }
        Some(corner)
    }

    fn put(&mut self, corner: Anchor, tone: Tone, words: &str) {
        if !words.is_empty() {
            self.inner.push(PlacedLabel { corner, tone, words: words.to_owned() });
        }
    }

    fn put_or_list(&mut self, corner: Option<Anchor>, tone: Tone, words: &str, class: String) {
        match corner {
            Some(corner) => self.put(corner, tone, words),
            None if words.is_empty() => {}
            None => self.listed.push((class, words.to_owned())),
        }
    }

    /// Writes the labels within the plot and beside it.
    pub(super) fn write(&self, m: &mut Markup) {
        for PlacedLabel { corner: (x, y, dx, dy), tone, words } in &self.inner {
            let anchor = if *dx < 0 { " end" } else { "" };
            let class = format!("on {}{anchor}", tone_class(*tone));
            let text = m.el("text").attr("class", class).attr("x", percent(*x)).attr("dx", dx);
            let (name, more) = without_brackets(words);
            text.attr("y", percent(*y)).attr("dy", dy).with(|m| {
                m.text(name);
                if !more.is_empty() {
                    m.el("tspan").attr("class", "more").text(more);
                }
            });
        }
        for label in &self.side {
            let class = format!("side {}", tone_class(label.tone));
            let text = m.el("text").attr("class", class).attr("x", "100%").attr("dx", "6");
            text.attr("y", percent(label.from_top)).attr("dy", ".32em").text(&label.name);
        }
    }

    /// Writes the legend: areas, bars and marks among several series, and lines whose names have no
    /// room in the plot.
    pub(super) fn write_legend(&self, m: &mut Markup, plot: &Plot) {
        let beside = |shape: &Shape| matches!(shape, Shape::Line(_) | Shape::Step(_));
        let named = plot.series.iter().filter(|s| !s.name.is_empty());
        let mut named: Vec<_> = named.filter(|s| !beside(&s.shape)).collect();
        if plot.series.len() < 2 {
            named.clear();
        }
        if named.is_empty() && self.listed.is_empty() {
            return;
        }
        m.el("span").attr("class", "legend").with(|m| {
            for (class, name) in &self.listed {
                write_key(m, class, name, |m| {
                    m.el("path").attr("class", "l").attr("d", "M0 5h20").void();
                });
            }
            for series in named {
                write_key(m, &classes(series), &series.name, |m| {
                    write_sample(m, series);
                });
            }
        });
    }
}

fn write_key(m: &mut Markup, class: &str, name: &str, sample: impl FnOnce(&mut Markup)) {
    m.el("span").attr("class", "key").with(|m| {
        let svg = m.el("svg").attr("class", class).attr("viewBox", "0 0 20 10");
        svg.attr("aria-hidden", "true").with(sample);
        m.text(name);
    });
}

fn write_sample(m: &mut Markup, series: &PlotSeries) {
    let of_cell = match series.shape {
        Shape::Cells(.., shade) => cell_class(shade),
        _ => String::new(),
    };
    let (class, d) = match (&series.shape, series.mark) {
        (Shape::Cells(..), _) => (of_cell.as_str(), "M4 0h12v10h-12z"),
        (Shape::Points(_), Mark::Square | Mark::Frame) => ("dot sq", "M10 5h0"),
        (Shape::Points(_), _) => ("dot", "M10 5h0"),
        (Shape::Band(_), _) => ("band", "M0 0h20v10h-20z"),
        _ => ("bar", "M4 0h12v10h-12z"),
    };
    m.el("path").attr("class", class).attr("d", d).void();
    if matches!(series.mark, Mark::Ring | Mark::Frame) {
        let class = format!("{class} in");
        m.el("path").attr("class", class).attr("d", d).void();
    }
}

/// Splits off the text in brackets, which narrow figures omit.
fn without_brackets(words: &str) -> (&str, &str) {
    words.split_at(words.find(" (").unwrap_or(words.len()))
}

/// The box of a label at any width of the plot, without and with the text in brackets.
fn rooms(plot: &Plot, margins: &PlotMargins, (x, y, dx, dy): Anchor, words: &str) -> [LabelBox; 2] {
    let height = f64::from(plot.height.max(1));
    let [narrow, wide] = margins.widths();
    [(narrow, without_brackets(words).0), (wide, words)].map(|(plot_px, shown)| {
        // The wider the plot, the nearer they are to their place.
        let dx = f64::from(dx);
        let near = x + dx / WIDEST_PX;
        let far = x + (dx + bold_px(shown).copysign(dx)) / plot_px;
        let baseline = y + f64::from(dy) / height;
        LabelBox::at([near, far], baseline, height)
    })
}

impl PlotMargins {
    /// The width of the plot in the narrowest figure without brackets, and with them.
    fn widths(&self) -> [f64; 2] {
        let beside = self.left + self.right;
        let figures = [self.figure, self.figure.max(BRACKETS_PX)];
        figures.map(|figure| figure.saturating_sub(beside).max(80) as f64)
    }

    /// The share by which labels may reach into the right margin.
    fn beyond(&self) -> [f64; 2] {
        self.widths().map(|width| self.right.min(16) as f64 / width)
    }
}

impl Plot {
    /// The possible positions for the name of a reference line; none outside of the plot.
    fn corners_at(&self, reference: &Reference) -> Vec<Anchor> {
        match reference.at {
            ReferenceAt::Y(y) => {
                let at = self.y.position_within(y).map(|p| self.depth_of(p));
                let corners = |y| {
                    let places = [(0.0, 4), (1.0, -4), (0.25, 4), (0.5, 4), (0.75, -4)];
                    let rows = |dy| places.map(|(x, dx)| (x, y, dx, dy));
                    [-7, 17].map(rows).into_iter().flatten()
                };
                at.into_iter().flat_map(corners).collect()
            }
            ReferenceAt::X(x) => {
                let at = self.x.position_within(x);
                let rows = [(0.0, 12), (0.0, 27), (1.0, -6), (1.0, -21)];
                let between = [0.2, 0.35, 0.5, 0.65, 0.8].map(|y| (y, 4));
                let rows: Vec<(f64, i32)> = rows.into_iter().chain(between).collect();
                let corners =
                    |x| rows.iter().flat_map(move |(y, dy)| [6, -6].map(|dx| (x, *y, dx, *dy)));
                at.into_iter().flat_map(corners).collect()
            }
        }
    }

    /// The position for the name of a vertical line above a plot of categories, whose rows have no
    /// room for it. `above` rows are taken.
    fn place_above(&self, reference: &Reference, above: usize) -> Option<Anchor> {
        let ReferenceAt::X(x) = reference.at else {
            return None;
        };
        let x = self.x.position_within(x)?;
        let is_above = self.y.is_of_categories() && !reference.label.is_empty();
        let dy = -12 - (above * ROW_ABOVE_PX) as i32;
        is_above.then_some((x, 0.0, if x > 0.5 { -3 } else { 3 }, dy))
    }

    /// The number of rows of names above the plot.
    pub(super) fn rows_above(&self) -> usize {
        let placed = self.references.iter().enumerate();
        placed.filter(|(i, r)| self.place_above(r, *i).is_some()).count()
    }

    /// Whether the name of a series stands beside the right edge.
    fn is_named_aside(&self, series: &PlotSeries) -> bool {
        let is_line = matches!(series.shape, Shape::Line(_) | Shape::Step(_));
        let is_named = self.series.len() > 1 && !series.name.is_empty();
        is_line
            && is_named
            && self.early_end(series).is_none()
            && self.last_position(series).is_some()
    }

    /// The position on y of the last visible point of a line.
    fn last_position(&self, series: &PlotSeries) -> Option<f64> {
        let points = match &series.shape {
            Shape::Line(points) => points.as_slice(),
            Shape::Step(points) => &points[..points.len().saturating_sub(1)],
            _ => return None,
        };
        points.iter().rev().find_map(|p| self.y.position_within(p.y))
    }

    /// The end of a named line that leaves the plot before its right edge.
    fn early_end(&self, series: &PlotSeries) -> Option<(f64, f64)> {
        let Shape::Line(points) = &series.shape else {
            return None;
        };
        let named = self.series.len() > 1 && !series.name.is_empty();
        let last = points.iter().rev().find_map(|p| {
            let y = self.y.position_within(p.y)?;
            Some((self.x.position(p.x)?, self.depth_of(y)))
        });
        last.filter(|(x, _)| named && *x < EARLY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Point, Scale, Unit};

    const MARGINS: PlotMargins = PlotMargins { left: 60, right: 60, figure: 300 };

    fn plot(points: &[(f64, f64)]) -> Plot {
        let points = points.iter().map(|(x, y)| Point::new(*x, *y)).collect();
        let x = Scale::linear(0.0, 100.0, Unit::Number, "x");
        let y = Scale::linear(0.0, 100.0, Unit::Number, "y");
        Plot::new("", x, y).with(PlotSeries::marks("", points))
    }

    fn level(y: f64, label: &str) -> Reference {
        Reference::y(y, label)
    }

    fn words(plot: &Plot) -> PlotLabels {
        PlotLabels::of(plot, &MARGINS, side_labels(plot))
    }

    fn placed(words: &PlotLabels) -> Vec<&str> {
        words.inner.iter().map(|p| p.words.as_str()).collect()
    }

    #[test]
    fn names_of_levels_that_lie_close_together_do_not_overlap() {
        let plot = plot(&[]).against(level(50.0, "one")).against(level(49.0, "two"));
        let words = words(&plot);
        assert_eq!(placed(&words), ["one", "two"]);
        for taken in &words.taken {
            let [one, two] = taken.as_slice() else {
                panic!("{taken:?}");
            };
            assert!(!one.overlaps(two));
            assert!(!one.is_crossed(&plot) && !two.is_crossed(&plot));
        }
    }

    #[test]
    fn what_has_no_room_is_in_the_legend_or_left_out() {
        let mut crowded = plot(&[(50.0, 50.0); 9]);
        crowded.series[0].labels = (0..9).map(|i| format!("point {i}")).collect();
        for i in 0..60 {
            crowded = crowded.against(level(f64::from(i) * 1.7, &format!("level {i}")));
        }
        let words = words(&crowded);
        assert_eq!(words.inner.len(), words.taken[0].len());
        let named = words.inner.len() + words.listed.len();
        assert_eq!(named, 60, "{:?} {:?}", words.inner, words.listed);
        assert!(!words.listed.is_empty());
        // With room they stand beside their points, as long as there is some.
        let mut roomy = plot(&[(20.0, 20.0), (60.0, 60.0), (60.0, 60.0), (60.0, 60.0)]);
        roomy.series[0].labels = (0..4).map(|i| format!("p {i}")).collect();
        let words = super::tests::words(&roomy);
        assert_eq!(placed(&words).first(), Some(&"p 0"));
        assert!(words.inner.len() >= 2 && words.listed.is_empty());
    }

    #[test]
    fn the_name_of_a_place_stands_above_rows() {
        let mut plot =
            plot(&[]).against(Reference::x(10.0, "idle 20 ms")).against(Reference::x(12.0, "b"));
        assert_eq!(plot.rows_above(), 0);
        plot.y = Scale::categories(vec!["1/1".into()]);
        assert_eq!(plot.rows_above(), 2);
        let rows: Vec<i32> = words(&plot).inner.iter().map(|p| p.corner.3).collect();
        assert_eq!(rows, [-12, -28]);
    }

    #[test]
    fn legend_names_lines_that_do_not_fit_beside_a_low_plot() {
        let mut plot = plot(&[]);
        for i in 0..6 {
            let points = [0.0, 100.0].map(|x| Point::new(x, 50.0));
            plot = plot.with(PlotSeries::line(format!("line {i}"), points.into()));
        }
        assert_eq!(side_labels(&plot).len(), 6);
        plot.height = 60;
        let words = words(&plot);
        assert_eq!((words.side.len(), words.listed.len()), (0, 6));
    }
}
