//! Straight lines through points.

/// A line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// By how much it rises for each unit of x.
    pub slope: f64,
    /// Its value at x = 0.
    pub intercept: f64,
    /// Coefficient of determination: the share of the variance of y that it accounts for.
    pub r_squared: f64,
}

impl Line {
    /// The line of least squares through these points; `None` of fewer than three different x, as
    /// it would fit any two.
    pub fn through(points: &[(f64, f64)]) -> Option<Line> {
        let mut places: Vec<f64> = points.iter().map(|p| p.0).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() < 3 {
            return None;
        }
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|p| of(p.0 - x, p.1 - y)).sum()
        };
        let (xx, xy, yy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
        let slope = xy / xx;
        Some(Line {
            slope,
            intercept: y - slope * x,
            // A level that nothing changes is told by nothing.
            r_squared: if yy > 0.0 {
                (xy * xy / (xx * yy)).min(1.0)
            } else {
                0.0
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let points: Vec<(f64, f64)> = [16.0, 128.0, 512.0, 975.0]
            .map(|d| (d, 130.0 + 2.0 * d))
            .into();
        let line = Line::through(&points).expect("four points");
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 130.0).abs() < 1e-9);
        assert!((line.r_squared - 1.0).abs() < 1e-12);
        // By hand: slope 1/2, residuals −1/6, 1/3, −1/6, so 1 − (1/6)/(2/3) = 3/4.
        let line = Line::through(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]).expect("three");
        assert!((line.slope - 0.5).abs() < 1e-12 && (line.r_squared - 0.75).abs() < 1e-12);
    }

    #[test]
    fn two_points_are_no_evidence_of_a_line() {
        assert_eq!(Line::through(&[(1.0, 2.0), (2.0, 4.0), (2.0, 4.1)]), None);
        assert_eq!(Line::through(&[]), None);
        let flat = Line::through(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]).expect("three");
        assert_eq!((flat.slope, flat.r_squared), (0.0, 0.0));
    }
}
