//! The simplex method of Nelder and Mead (The Computer Journal 7(4), 1965) in two dimensions.

const STEPS_MAX: usize = 120;
const TOLERANCE: f64 = 1e-7;

type Point = [f64; 2];

/// Minimises `f` from `start` with a first simplex of size `step`; gives the place and the value.
pub(super) fn minimise(start: Point, step: f64, f: impl Fn(Point) -> f64) -> (Point, f64) {
    let corners = [
        start,
        [start[0] + step, start[1]],
        [start[0], start[1] + step],
    ];
    let mut simplex = corners.map(|p| (p, f(p)));
    for _ in 0..STEPS_MAX {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let [best, second, worst] = simplex;
        if spread(best.0, worst.0).max(spread(best.0, second.0)) < TOLERANCE {
            break;
        }
        let middle = along(best.0, second.0, 0.5);
        let try_at = |t: f64| {
            let p = along(middle, worst.0, t);
            (p, f(p))
        };
        let reflected = try_at(-1.0);
        let replacement = if reflected.1 < best.1 {
            let expanded = try_at(-2.0);
            if expanded.1 < reflected.1 {
                expanded
            } else {
                reflected
            }
        } else if reflected.1 < second.1 {
            reflected
        } else {
            try_at(if reflected.1 < worst.1 { -0.5 } else { 0.5 })
        };
        if replacement.1 < worst.1 {
            simplex[2] = replacement;
        } else {
            for corner in &mut simplex[1..] {
                let p = along(best.0, corner.0, 0.5);
                *corner = (p, f(p));
            }
        }
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex[0]
}

fn along(from: Point, to: Point, t: f64) -> Point {
    [
        from[0] + t * (to[0] - from[0]),
        from[1] + t * (to[1] - from[1]),
    ]
}

fn spread(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).abs().max((a[1] - b[1]).abs())
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let valley = |[x, y]: [f64; 2]| (1.0 - x).powi(2) + 5.0 * (y - x * x).powi(2);
        let ([x, y], value) = minimise([-1.0, 1.0], 0.5, valley);
        assert!((x - 1.0).abs() < 1e-3 && (y - 1.0).abs() < 1e-3, "{x} {y}");
        assert!(value < 1e-6);
    }
}
