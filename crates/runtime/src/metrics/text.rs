//! The page that is scraped.

use prometheus_client::{encoding::text::encode_registry, registry::Registry};

/// What [`render`] writes, in the words of HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All series, in the plain text format.
pub fn render(registry: &Registry) -> String {
    let mut page = String::new();
    // Writing into a string fails only where a metric itself gives up; what was written before is whole lines.
    if encode_registry(&mut page, registry).is_err() {
        tracing::warn!("the metrics are incomplete: one of them cannot be written");
    }
    let mut plain = String::with_capacity(page.len());
    for line in page.lines() {
        match bucket_bound(line) {
            Some((before, bound, after)) => plain.extend([before, &number(bound), after]),
            None => plain.push_str(line),
        }
        plain.push('\n');
    }
    plain
}

/// A bucket's bound is part of the identity of its series, and has to be spelled as scrapers know it: `1`, not `1.0`.
fn bucket_bound(line: &str) -> Option<(&str, f64, &str)> {
    let start = line.find("_bucket{le=\"")? + "_bucket{le=\"".len();
    let (before, rest) = line.split_at_checked(start)?;
    let (bound, after) = rest.split_at_checked(rest.find('"')?)?;
    let bound: f64 = bound.parse().ok()?;
    bound.is_finite().then_some((before, bound, after))
}

/// The shortest spelling; very small and very large numbers with an exponent of two digits.
fn number(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_spelled_as_scrapers_know_them() {
        let table = [
            (1e-8, "1e-08"),
            (0.000_01, "1e-05"),
            (0.0001, "0.0001"),
            (0.25, "0.25"),
            (0.0, "0"),
            (1.0, "1"),
            (16_384.0, "16384"),
            (262_144.0, "262144"),
            (1_048_576.0, "1.048576e+06"),
            (124_416_000.0, "1.24416e+08"),
        ];
        for (value, want) in table {
            assert_eq!(number(value), want);
        }
    }
}
