//! The table below a figure: its values for screen readers, and for the script, which shows a row
//! of it on hover.

use crate::html::markup::{Markup, scrolling};
use crate::plot::{Plot, PlotSeries, Point, Scale, Shape};

/// The table, and the cells of each series.
#[derive(Debug)]
pub(super) struct DataTable {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    of_series: Vec<SeriesCells>,
}

/// The cells of a series.
#[derive(Debug, Default)]
struct SeriesCells {
    rows: Vec<usize>,
    first_column: usize,
    columns: usize,
}

impl DataTable {
    /// The table of a plot. Rows follow the scale of the keys: x, or the categories.
    pub(super) fn of(plot: &Plot) -> DataTable {
        let lying = plot.y.is_of_categories();
        let scale = if lying { &plot.y } else { &plot.x };
        let mut keys: Vec<f64> = Vec::new();
        for series in plot.series.iter().filter(|s| s.listed) {
            keys.extend(keys_of(series, lying));
        }
        keys.sort_unstable_by(f64::total_cmp);
        keys.dedup();
        let mut table = DataTable {
            heads: vec![scale.name.clone()],
            rows: keys.iter().map(|k| vec![scale.value(*k)]).collect(),
            of_series: Vec::new(),
        };
        for series in &plot.series {
            if !series.listed {
                table.of_series.push(SeriesCells::default());
                continue;
            }
            let find = |k: f64| keys.binary_search_by(|key| key.total_cmp(&k)).unwrap_or(0);
            let rows: Vec<usize> = keys_of(series, lying).into_iter().map(find).collect();
            // The label of a bar is its value, which has its own cell.
            let labels = match series.shape {
                Shape::Bars(..) => &[][..],
                _ => &series.labels,
            };
            for (label, row) in labels.iter().zip(&rows) {
                table.rows[*row][0].push_str(&format!(" ({label})"));
            }
            table.add(plot, series, rows);
        }
        table
    }

    fn add(&mut self, plot: &Plot, series: &PlotSeries, rows: Vec<usize>) {
        let lying = plot.y.is_of_categories();
        let scale = if lying { &plot.x } else { &plot.y };
        let first_column = self.heads.len();
        let cells: Vec<Vec<String>> =
            match &series.shape {
                Shape::Boxes(boxes, figures) => {
                    let several = plot.series.len() > 1;
                    self.heads.extend(figures.iter().map(|f| {
                        if several { format!("{} {f}", series.name) } else { f.to_string() }
                    }));
                    let five = boxes.iter().map(|b| b.percentiles);
                    five.map(|five| five.map(|v| scale.value(v)).into()).collect()
                }
                shape => {
                    let is_named = !series.name.is_empty();
                    let name = if is_named { &series.name } else { &scale.name };
                    self.heads.push(name.clone());
                    series.points().iter().map(|p| vec![cell(scale, p, lying, shape)]).collect()
                }
            };
        let columns = self.heads.len() - first_column;
        for row in &mut self.rows {
            row.resize(self.heads.len(), String::new());
        }
        for (row, cells) in rows.iter().zip(cells) {
            for (i, cell) in cells.into_iter().enumerate() {
                let text = &mut self.rows[*row][first_column + i];
                if !text.is_empty() {
                    text.push_str(", ");
                }
                text.push_str(&cell);
            }
        }
        self.of_series.push(SeriesCells { rows, first_column, columns });
    }

    /// The rows of a series: the first if they are consecutive, else all.
    pub(super) fn rows_of(&self, series: usize) -> String {
        let rows = &self.of_series[series].rows;
        let first = rows.first().copied().unwrap_or(0);
        if rows.iter().enumerate().all(|(i, r)| *r == first + i) {
            return first.to_string();
        }
        let rows: Vec<String> = rows.iter().map(usize::to_string).collect();
        format!(",{}", rows.join(" "))
    }

    /// The first column of a series, and the number of its columns.
    pub(super) fn columns_of(&self, series: usize) -> String {
        let place = &self.of_series[series];
        format!("{} {}", place.first_column, place.columns)
    }

    /// Writes the table, folded up.
    pub(super) fn write(&self, m: &mut Markup, title: &str) {
        if self.rows.is_empty() {
            return;
        }
        m.el("details").attr("class", "data").with(|m| {
            m.el("summary").text("Data");
            let caption = format!("{title}: data");
            scrolling(m, &caption).with(|m| self.table(m, title));
        });
    }

    fn table(&self, m: &mut Markup, title: &str) {
        m.el("table").with(|m| {
            m.el("caption").text(title);
            m.raw("<thead><tr>");
            for head in &self.heads {
                m.el("th").attr("scope", "col").text(head);
            }
            // HTML lets the ends of rows and cells be left out, which is a third of the bytes.
            m.raw("<tbody>");
            for row in &self.rows {
                for (i, cell) in row.iter().enumerate() {
                    m.raw(if i == 0 { "<tr><th>" } else { "<td>" });
                    m.text(cell);
                }
            }
        });
    }
}

fn keys_of(series: &PlotSeries, lying: bool) -> Vec<f64> {
    // Marks of one category may stand a little beside each other.
    let key = |p: &Point| if lying { p.y.round() } else { p.x };
    match &series.shape {
        Shape::Boxes(boxes, _) => boxes.iter().map(|b| b.at).collect(),
        // The last point of a stair is only where it ends.
        Shape::Step(p) => p[..p.len().saturating_sub(1)].iter().map(key).collect(),
        _ => series.points().iter().map(key).collect(),
    }
}

fn cell(scale: &Scale, point: &Point, lying: bool, shape: &Shape) -> String {
    let value = scale.value(if lying { point.x } else { point.y });
    match point.range {
        None => value,
        Some(_) if matches!(shape, Shape::Stack(..)) => value,
        Some([lo, hi]) if matches!(shape, Shape::Band(_) | Shape::Cells(..)) => {
            format!("{} to {}", scale.value(lo), scale.value(hi))
        }
        Some([lo, hi]) => format!("{value} ({} to {})", scale.value(lo), scale.value(hi)),
    }
}
