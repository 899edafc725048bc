//! The conclusion in one or two sentences.

use crate::analysis::overload::{Summary, times};
use crate::analysis::words::{exact, number, percent};
use crate::report::OverloadConclusion;

/// Throughput that is nearer to the most than this share at every level is the same.
const SAME_SHARE: f64 = 0.05;

/// What simple clients and S-Clients found together.
pub fn of(summary: &Summary, conclusion: &OverloadConclusion) -> String {
    if summary.points.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    if summary.capacity_per_s <= 0.0 {
        let relation = relation(conclusion).map(|r| format!(" {r}"));
        return nothing_served(summary) + &relation.unwrap_or_default();
    }
    let mut first = served(summary);
    first.extend(simple(conclusion));
    first.extend(pressed(summary));
    let mut sentences = vec![first.join("; ") + "."];
    sentences.extend(relation(conclusion));
    sentences.join(" ")
}

fn nothing_served(summary: &Summary) -> String {
    let offered = summary.points.iter().map(|p| p.first_syn_per_s);
    let most = offered.fold(0.0, f64::max);
    format!(
        "The server served nothing, of up to {}/s offered.",
        number(most)
    )
}

fn served(summary: &Summary) -> Vec<String> {
    let capacity = summary.capacity_per_s;
    let beyond = || {
        summary
            .pressing()
            .filter(|p| p.is_valid && p.past_saturation)
    };
    let least = beyond().map(|p| p.served_per_s).reduce(f64::min);
    let capacity_text = number(capacity);
    vec![match least {
        Some(least) if least >= (1.0 - SAME_SHARE) * capacity => {
            format!("The server serves {capacity_text}/s whatever is offered")
        }
        Some(least) => format!(
            "The server serves {capacity_text}/s at the most and as little as {}/s under overload",
            number(least)
        ),
        None => format!("The server serves {capacity_text}/s at the most that was seen"),
    }]
}

fn simple(conclusion: &OverloadConclusion) -> Option<String> {
    let clients = conclusion.simple.iter().map(|row| row.clients).max()?;
    let rates = conclusion.simple.iter().map(|row| row.first_syn_per_s);
    let most = number(rates.fold(0.0, f64::max));
    Some(match clients {
        1 => format!("one simple client asked for {most}/s"),
        n => format!(
            "up to {} simple clients never asked for more than {most}/s",
            exact(f64::from(n))
        ),
    })
}

fn pressed(summary: &Summary) -> Option<String> {
    use crate::analysis::overload::Scheme::Scheduled;
    let most = summary.most_offered_per_s()?;
    let is_scheduled = summary.pressing().any(|p| matches!(p.scheme, Scheduled(_)));
    let who = match is_scheduled {
        true => "the schedule",
        false => "S-Clients",
    };
    Some(format!(
        "{who} offered up to {}/s ({} times)",
        number(most),
        times(most, summary.capacity_per_s)
    ))
}

/// How what arrives goes with the descriptors.
fn relation(conclusion: &OverloadConclusion) -> Option<String> {
    let r_squared = conclusion.r_squared?;
    let deviation = conclusion.deviation_percent?;
    Some(format!(
        "SYN rate = served + D/T to within {}, R² {}.",
        percent(deviation.max(0.01)),
        r_squared_text(r_squared)
    ))
}

/// With so many nines as it has: `0.99998`.
fn r_squared_text(r_squared: f64) -> String {
    // Never rounded up to a perfection that it lacks.
    let shown = (r_squared * 1e6).floor() / 1e6;
    let text = format!("{shown:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
