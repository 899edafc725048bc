//! What a figure shows: two [`Scale`]s, some [`Series`] and what they are compared with
//! ([`Reference`]). How it is drawn is up to the painters: `html::svg` and `text::plot`.

mod scale;

pub(crate) use scale::{Scale, Unit};

/// What a series is drawn in. Never the only thing that tells two series apart.
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
    /// What the data are to be compared with: theory, asymptotes, what was asked for.
    Muted,
    /// What is wrong: errors, loss.
    Bad,
}

/// How a line is broken up, so that lines differ without colour.
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

/// What marks a point.
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

/// One value, with its interval of confidence where there is one. A `y` that is not finite, or not
/// positive on a logarithmic scale, is a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Where; on a scale of categories the number of one, from 0.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// The interval of confidence of `y` (points), or the edges of the band.
    pub range: Option<[f64; 2]>,
}

impl Point {
    /// A value without an interval.
    pub(crate) fn new(x: f64, y: f64) -> Point {
        Point { x, y, range: None }
    }

    /// With an interval of confidence where there is one.
    pub(crate) fn with(x: f64, y: f64, range: Option<[f64; 2]>) -> Point {
        Point { x, y, range }
    }
}

/// A distribution at one place of a scale of categories: `low` to `high` as a thin line, `from` to
/// `to` as a box, `middle` as a stroke across it. All on the other scale.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    /// Which category, from 0.
    pub at: f64,
    /// End of the thin line.
    pub low: f64,
    /// Begin of the box.
    pub from: f64,
    /// The stroke across the box.
    pub middle: f64,
    /// End of the box.
    pub to: f64,
    /// Other end of the thin line.
    pub high: f64,
}

/// How strong the colour of a cell is, from 1 to [`Shade::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shade(pub u8);

impl Shade {
    /// The strongest.
    pub(crate) const MOST: u8 = 5;
}

/// What a series looks like.
#[derive(Clone, Debug, PartialEq)]
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
    /// Bars from the axis to `y`, so wide (in units of x; 0.8 for categories). With categories up
    /// the side the bars lie down, and a point is (value, category).
    Bars(Vec<Point>, f64),
    /// Pieces of stacked bars, so wide: from one edge of each point's `range` to the other. The
    /// value that it stands for is the point's own.
    Stack(Vec<Point>, f64),
    /// Cells of a heat map, so wide and of this shade: from one edge of each point's `range` to the
    /// other.
    Cells(Vec<Point>, f64, Shade),
    /// A distribution for each category; the names of the five figures are the table's columns:
    /// `["min", "p50", "mean", "p99", "max"]`.
    Spreads(Vec<Spread>, [&'static str; 5]),
}

/// Data of one kind under one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Short, as it stands beside the line: `p99`, `asked`.
    pub name: String,
    /// Its points.
    pub shape: Shape,
    /// Its colour.
    pub tone: Tone,
    /// Its line.
    pub dash: Dash,
    /// Its points' marks.
    pub mark: Mark,
    /// Words beside each of its points, such as the number of users; none, or one for each point
    /// (empty: nothing there).
    pub labels: Vec<String>,
    /// Whether its values are worth a column of the table and a line on hover (a fitted curve's
    /// are not).
    pub listed: bool,
}

impl Series {
    fn of(name: impl Into<String>, shape: Shape) -> Series {
        Series {
            name: name.into(),
            shape,
            tone: Tone::First,
            dash: Dash::Solid,
            mark: Mark::None,
            labels: Vec::new(),
            listed: true,
        }
    }

    /// A line.
    pub(crate) fn line(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series::of(name, Shape::Line(points))
    }

    /// A stair of levels.
    pub(crate) fn step(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series::of(name, Shape::Step(points))
    }

    /// Marks alone.
    pub(crate) fn points(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series::of(name, Shape::Points(points)).marked(Mark::Dot)
    }

    /// An area.
    pub(crate) fn band(name: impl Into<String>, points: Vec<Point>) -> Series {
        Series::of(name, Shape::Band(points))
    }

    /// Bars.
    pub(crate) fn bars(name: impl Into<String>, points: Vec<Point>, width: f64) -> Series {
        Series::of(name, Shape::Bars(points, width))
    }

    /// Pieces of stacked bars.
    pub(crate) fn stack(name: impl Into<String>, points: Vec<Point>, width: f64) -> Series {
        Series::of(name, Shape::Stack(points, width))
    }

    /// Cells of a heat map.
    pub(crate) fn cells(
        name: impl Into<String>,
        points: Vec<Point>,
        width: f64,
        shade: Shade,
    ) -> Series {
        Series::of(name, Shape::Cells(points, width, shade))
    }

    /// Distributions.
    pub(crate) fn spreads(
        name: impl Into<String>,
        spreads: Vec<Spread>,
        figures: [&'static str; 5],
    ) -> Series {
        Series::of(name, Shape::Spreads(spreads, figures))
    }

    /// In this colour.
    pub(crate) fn toned(mut self, tone: Tone) -> Series {
        self.tone = tone;
        self
    }

    /// With this line.
    pub(crate) fn dashed(mut self, dash: Dash) -> Series {
        self.dash = dash;
        self
    }

    /// With these marks.
    pub(crate) fn marked(mut self, mark: Mark) -> Series {
        self.mark = mark;
        self
    }

    /// With words beside each of its points.
    pub(crate) fn labelled(mut self, labels: Vec<String>) -> Series {
        self.labels = labels;
        self
    }

    /// Drawn only: neither in the table nor on hover.
    pub(crate) fn unlisted(mut self) -> Series {
        self.listed = false;
        self
    }

    /// Its points; none for distributions.
    pub(crate) fn its_points(&self) -> &[Point] {
        match &self.shape {
            Shape::Line(p) | Shape::Step(p) | Shape::Points(p) | Shape::Band(p) => p,
            Shape::Bars(p, _) | Shape::Stack(p, _) | Shape::Cells(p, ..) => p,
            Shape::Spreads(..) => &[],
        }
    }
}

/// A line across the plot that the data are compared with, and its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reference {
    /// A level, such as a bound, a maximum.
    Horizontal {
        /// Where.
        y: f64,
        /// What it is, with its value: `bound 50 ms`.
        label: String,
        /// Its colour.
        tone: Tone,
    },
    /// A place, such as the knee, and its interval of confidence as an area.
    Vertical {
        /// Where.
        x: f64,
        /// What it is, with its value.
        label: String,
        /// Its colour.
        tone: Tone,
        /// Its interval of confidence.
        range: Option<[f64; 2]>,
    },
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plot {
    /// What is shown: `Throughput against users`.
    pub title: String,
    /// What is to be seen in it, in a sentence, for those who do not see it.
    pub description: String,
    /// From left to right.
    pub x: Scale,
    /// From bottom to top (categories: from top to bottom).
    pub y: Scale,
    /// What is drawn, the hindmost first.
    pub series: Vec<Series>,
    /// Lines to compare with, behind all series.
    pub references: Vec<Reference>,
    /// A word below the figure; may be empty.
    pub note: String,
    /// Whether the reader can zoom along x: for long series over a linear scale.
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

    /// With this description.
    pub(crate) fn described(mut self, description: impl Into<String>) -> Plot {
        self.description = description.into();
        self
    }

    /// With one series more.
    pub(crate) fn with(mut self, series: Series) -> Plot {
        self.series.push(series);
        self
    }

    /// Whether it is a heat map.
    pub(crate) fn is_heat_map(&self) -> bool {
        let mut shapes = self.series.iter().map(|s| &s.shape);
        shapes.any(|shape| matches!(shape, Shape::Cells(..)))
    }

    /// With one line more to compare with.
    pub(crate) fn against(mut self, reference: Reference) -> Plot {
        self.references.push(reference);
        self
    }
}
