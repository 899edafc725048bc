//! The content of a figure: two [`Scale`]s, [`PlotSeries`] and [`Reference`] lines. The painters
//! `html::svg` and `text::plot` draw it.

pub(crate) mod scale;

pub(crate) use scale::{Axis, Scale, Unit, span, top};

/// The colour of a series. Never the only difference between two series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The main thing shown: blue.
    #[default]
    First,
    /// Orange.
    Second,
    /// Green.
    Third,
    /// Purple.
    Fourth,
    /// For comparison: theory, asymptotes, the rate asked for.
    Muted,
    /// For trouble: errors, loss.
    Bad,
}

/// The pattern of a line, which distinguishes lines without colour.
#[allow(clippy::enum_variant_names)] // Dash and dot in turn have no other name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dash {
    /// Not at all.
    #[default]
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash and dot in turn.
    DashDot,
}

/// The mark of a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing; its line passes through.
    #[default]
    None,
    /// A filled circle.
    Dot,
    /// A hollow circle.
    Ring,
    /// A filled square.
    Square,
    /// A hollow square.
    Frame,
}

/// One value, with its confidence interval if known. A `y` that is not finite, or not positive on a
/// logarithmic scale, is a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// The value on the horizontal scale.
    pub x: f64,
    /// The value on the vertical scale; among categories the row, from 0.
    pub y: f64,
    /// The confidence interval, or the two edges of a band, piece or cell.
    pub range: Option<[f64; 2]>,
}

impl Point {
    /// A value without an interval.
    pub(crate) fn new(x: f64, y: f64) -> Point {
        Point { x, y, range: None }
    }

    /// A value with its interval.
    pub(crate) fn with(x: f64, y: f64, range: Option<[f64; 2]>) -> Point {
        Point { x, y, range }
    }
}

/// The percentiles of a distribution in one row of a plot of categories. The ends of the whisker
/// are outermost, then the ends of the box, the median in the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BoxPlot {
    /// The category, from 0.
    pub at: f64,
    /// In ascending order.
    pub percentiles: [f64; 5],
}

/// Intensity of the colour of a cell, from 1 to [`Shade::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shade(pub u8);

impl Shade {
    /// The strongest.
    pub(crate) const MOST: u8 = 5;
}

/// The points of a series and how they are drawn.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Straight lines from point to point, with the interval of each that has one.
    Line(Vec<Point>),
    /// A level from each `x` to the next, for figures of an interval of time. The last point only
    /// ends the level before it.
    Step(Vec<Point>),
    /// Marks alone, with the interval of each that has one.
    Points(Vec<Point>),
    /// The area between the two edges of each point's `range`.
    Band(Vec<Point>),
    /// Horizontal bars from the axis to `x` in the row `y`, and their height in rows.
    Bars(Vec<Point>, f64),
    /// Pieces of stacked bars, and their height in rows. A piece extends over its point's `range`;
    /// its value is the point's `x`.
    Stack(Vec<Point>, f64),
    /// Cells of a heat map, their width in units of x, and their shade. A cell extends over its
    /// point's `range`.
    Cells(Vec<Point>, f64, Shade),
    /// Distributions, one for each category, and the names of their five percentiles, which are the
    /// titles of the table's columns.
    Boxes(Vec<BoxPlot>, [&'static str; 5]),
}

/// Data of one kind under one name.
#[derive(Clone, Debug)]
pub(crate) struct PlotSeries {
    /// Short, as beside the line: `p99`, `asked`.
    pub name: String,
    /// The points and how they are drawn.
    pub shape: Shape,
    /// The colour.
    pub tone: Tone,
    /// The pattern of the line.
    pub dash: Dash,
    /// The marks of the points.
    pub mark: Mark,
    /// Words beside each point, such as the number of users. Empty, or one for each point.
    pub labels: Vec<String>,
    /// Whether its values appear in the table and on hover; those of a fitted curve do not.
    pub listed: bool,
}

impl PlotSeries {
    /// A series of this shape without marks.
    pub(crate) fn new(name: impl Into<String>, shape: Shape) -> PlotSeries {
        PlotSeries {
            name: name.into(),
            shape,
            tone: Tone::First,
            dash: Dash::Solid,
            mark: Mark::None,
            labels: Vec::new(),
            listed: true,
        }
    }

    /// See [`Shape::Line`].
    pub(crate) fn line(name: impl Into<String>, points: Vec<Point>) -> PlotSeries {
        PlotSeries::new(name, Shape::Line(points))
    }

    /// See [`Shape::Step`].
    pub(crate) fn step(name: impl Into<String>, points: Vec<Point>) -> PlotSeries {
        PlotSeries::new(name, Shape::Step(points))
    }

    /// See [`Shape::Points`]; the marks are dots.
    pub(crate) fn marks(name: impl Into<String>, points: Vec<Point>) -> PlotSeries {
        PlotSeries::new(name, Shape::Points(points)).marked(Mark::Dot)
    }

    /// See [`Shape::Bars`].
    pub(crate) fn bars(name: impl Into<String>, points: Vec<Point>, width: f64) -> PlotSeries {
        PlotSeries::new(name, Shape::Bars(points, width))
    }

    /// See [`Shape::Stack`].
    pub(crate) fn stack(name: impl Into<String>, points: Vec<Point>, width: f64) -> PlotSeries {
        PlotSeries::new(name, Shape::Stack(points, width))
    }

    /// Sets the colour.
    pub(crate) fn toned(mut self, tone: Tone) -> PlotSeries {
        self.tone = tone;
        self
    }

    /// Sets the pattern of the line.
    pub(crate) fn dashed(mut self, dash: Dash) -> PlotSeries {
        self.dash = dash;
        self
    }

    /// Sets the marks of the points.
    pub(crate) fn marked(mut self, mark: Mark) -> PlotSeries {
        self.mark = mark;
        self
    }

    /// Sets the words beside each point.
    pub(crate) fn labelled(mut self, labels: impl IntoIterator<Item = String>) -> PlotSeries {
        self.labels = labels.into_iter().collect();
        self
    }

    /// Leaves the series out of the table and of the values on hover.
    pub(crate) fn unlisted(mut self) -> PlotSeries {
        self.listed = false;
        self
    }

    /// The points; none for distributions.
    pub(crate) fn points(&self) -> &[Point] {
        match &self.shape {
            Shape::Line(p) | Shape::Step(p) | Shape::Points(p) | Shape::Band(p) => p,
            Shape::Bars(p, _) | Shape::Stack(p, _) | Shape::Cells(p, ..) => p,
            Shape::Boxes(..) => &[],
        }
    }
}

/// A line across the plot that the data are compared with.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    /// Its position.
    pub at: ReferenceAt,
    /// Its name with its value, such as `bound 50 ms`.
    pub label: String,
    /// Its colour.
    pub tone: Tone,
    /// The confidence interval of a value of x, drawn as an area.
    pub range: Option<[f64; 2]>,
}

/// The position of a reference line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReferenceAt {
    /// A value of x, such as the knee.
    X(f64),
    /// A value of y, such as a bound or a maximum.
    Y(f64),
}

impl Reference {
    /// A vertical line at a value of x.
    pub(crate) fn x(x: f64, label: impl Into<String>) -> Reference {
        Reference { at: ReferenceAt::X(x), label: label.into(), tone: Tone::Muted, range: None }
    }

    /// A horizontal line at a value of y.
    pub(crate) fn y(y: f64, label: impl Into<String>) -> Reference {
        Reference { at: ReferenceAt::Y(y), ..Reference::x(0.0, label) }
    }

    /// Sets the colour.
    pub(crate) fn toned(mut self, tone: Tone) -> Reference {
        self.tone = tone;
        self
    }
}

/// A figure.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The title: `Throughput against users`.
    pub title: String,
    /// The message of the figure in a sentence, for readers who cannot see it.
    pub description: String,
    /// From left to right.
    pub x: Scale,
    /// From bottom to top (categories: from top to bottom).
    pub y: Scale,
    /// Data, the hindmost first.
    pub series: Vec<PlotSeries>,
    /// Reference lines, behind all series.
    pub references: Vec<Reference>,
    /// A remark below the figure; may be empty.
    pub note: String,
    /// Whether the reader can zoom along x, for long series over a linear scale.
    pub zooms: bool,
    /// Height of the plot in CSS pixels, without the axis' labels.
    pub height: u32,
}

impl Plot {
    /// An empty plot of usual height.
    pub(crate) fn new(title: impl Into<String>, x: Scale, y: Scale) -> Plot {
        Plot {
            title: title.into(),
            description: String::new(),
            x,
            y,
            series: Vec::new(),
            references: Vec::new(),
            note: String::new(),
            zooms: false,
            height: 240,
        }
    }

    /// An empty plot with a row for each name, each `row_px` CSS pixels high.
    pub(crate) fn of_rows<N: Into<String>>(
        title: impl Into<String>,
        x: Scale,
        names: impl IntoIterator<Item = N>,
        row_px: u32,
    ) -> Plot {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let height = row_px * names.len() as u32;
        Plot::new(title, x, Scale::categories(names)).high(height)
    }

    /// Sets the description.
    pub(crate) fn described(mut self, description: impl Into<String>) -> Plot {
        self.description = description.into();
        self
    }

    /// Sets the remark below the figure.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Plot {
        self.note = note.into();
        self
    }

    /// Sets the height in CSS pixels.
    pub(crate) fn high(mut self, height: u32) -> Plot {
        self.height = height;
        self
    }

    /// Lets the reader zoom along x.
    pub(crate) fn zooming(mut self) -> Plot {
        self.zooms = true;
        self
    }

    /// Adds a series.
    pub(crate) fn with(mut self, series: PlotSeries) -> Plot {
        self.series.push(series);
        self
    }

    /// Adds a series, unless it has no points.
    pub(crate) fn with_any(self, series: PlotSeries) -> Plot {
        if series.points().is_empty() { self } else { self.with(series) }
    }

    /// Adds a reference line.
    pub(crate) fn against(mut self, reference: Reference) -> Plot {
        self.references.push(reference);
        self
    }

    /// Whether it is a heat map.
    pub(crate) fn is_heat_map(&self) -> bool {
        let mut shapes = self.series.iter().map(|s| &s.shape);
        shapes.any(|shape| matches!(shape, Shape::Cells(..)))
    }
}

/// A point in each row that has the figure.
pub(crate) fn row_points<T>(rows: &[T], figure: impl Fn(&T) -> Option<f64>) -> Vec<Point> {
    let rows = rows.iter().enumerate();
    rows.filter_map(|(i, row)| Some(Point::new(figure(row)?, i as f64))).collect()
}
