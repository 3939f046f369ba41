//! Resource quantities in the one form that the API writes: `1000m` is `1`, `1024Ki` is `1Mi`.

use serde_json::Value;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

enum Family {
    Decimal,
    Exponent,
    Binary,
}

/// The canonical form of a string or number; the error names the expected form.
pub(crate) fn canonical(given: &Value) -> Result<String, String> {
    let text = match given {
        Value::String(s) => s.clone(),
        Value::Number(n) => n.to_string(),
        _ => return Err(MALFORMED.to_owned()),
    };
    let (nanos, family) = parse(text.trim()).ok_or_else(|| MALFORMED.to_owned())?;
    Ok(print(nanos, &family))
}

/// The value in thousand-millionths, for comparing.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| nanos)
}

fn parse(text: &str) -> Option<(i128, Family)> {
    let split = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mantissa: i128 = digits.parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let (scaled, family) = if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        let shifted = mantissa.checked_mul(1 << bits)?.checked_mul(1_000_000_000)?;
        (div_up(shifted, 10i128.checked_pow(places)?), Family::Binary)
    } else {
        let (exponent, family) = match DECIMAL.iter().find(|(name, _)| *name == suffix) {
            Some((_, exponent)) => (*exponent, Family::Decimal),
            None => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, Family::Exponent),
        };
        let power = exponent + 9 - i32::try_from(places).ok()?;
        let factor = 10i128.checked_pow(power.unsigned_abs())?;
        (if power < 0 { div_up(mantissa, factor) } else { mantissa.checked_mul(factor)? }, family)
    };
    Some((if negative { -scaled } else { scaled }, family))
}

/// Anything finer than a nano rounds up, as the API does.
fn div_up(value: i128, by: i128) -> i128 {
    if by == 0 { value } else { (value + by - 1) / by }
}

fn print(nanos: i128, family: &Family) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    if matches!(family, Family::Binary) && nanos % 1_000_000_000 == 0 && nanos.abs() >= 1024 * 1_000_000_000 {
        let mut value = nanos / 1_000_000_000;
        let mut suffix = "";
        for (name, _) in BINARY {
            if value % 1024 != 0 {
                break;
            }
            value /= 1024;
            suffix = name;
        }
        return format!("{value}{suffix}");
    }
    let (mut value, mut exponent) = (nanos, -9);
    while value % 1000 == 0 && exponent < 18 {
        value /= 1000;
        exponent += 3;
    }
    match family {
        Family::Exponent if exponent != 0 => format!("{value}e{exponent}"),
        _ => {
            let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent).map_or("", |(name, _)| name);
            format!("{value}{suffix}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_take_their_one_form() {
        let table = [
            (json!("1000m"), "1"),
            (json!("1024Ki"), "1Mi"),
            (json!("0.5"), "500m"),
            (json!("16384000Ki"), "16000Mi"),
            (json!("1500Mi"), "1500Mi"),
            (json!("4"), "4"),
            (json!(110), "110"),
            (json!("1e3"), "1e3"),
            (json!("12e6"), "12e6"),
            (json!("1000"), "1k"),
            (json!("100k"), "100k"),
            (json!("0"), "0"),
            (json!("0Ki"), "0"),
            (json!("-2"), "-2"),
            (json!("1.5Gi"), "1536Mi"),
        ];
        for (given, want) in table {
            assert_eq!(canonical(&given).unwrap(), want, "{given}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for given in [json!("x"), json!(""), json!("1X"), json!(true), json!("1Kii"), json!("--1")] {
            assert!(canonical(&given).is_err(), "{given}");
        }
    }
}
