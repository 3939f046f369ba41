//! Drawing a sample that anybody can draw again.

/// Picks `count` of `names`, the same ones for the same seed. A name's luck depends on the seed and the name
/// alone, so code that is added elsewhere changes few of the picks.
pub(crate) fn draw(names: &[String], count: usize, seed: u64) -> Vec<String> {
    let mut drawn: Vec<(u64, &String)> = names.iter().map(|name| (luck(name, seed), name)).collect();
    drawn.sort();
    drawn.truncate(count);
    let mut picked: Vec<String> = drawn.into_iter().map(|(_, name)| name.clone()).collect();
    picked.sort();
    picked
}

/// FNV-1a over the seed and the name, then the mixing steps of splitmix64, because FNV alone leaves names
/// that differ in their last letter next to each other.
fn luck(name: &str, seed: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in seed.to_le_bytes().into_iter().chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// What has a meaning in a regular expression. Nothing else may be escaped: `\<`, say, has one only then.
const SPECIAL: &str = r"\.+*?()|[]{}^$#&-~";

/// A regular expression that matches `name` and nothing else.
pub(crate) fn exactly(name: &str) -> String {
    let mut pattern = String::from("^");
    for c in name.chars() {
        if SPECIAL.contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('$');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: u32) -> Vec<String> {
        (0..count).map(|at| format!("src/a.rs:{at}:1: replace f with ()")).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_sample() {
        let names = names(500);
        let mut turned = names.clone();
        turned.reverse();
        let picked = draw(&names, 50, 7);
        assert_eq!(picked.len(), 50);
        assert_eq!(picked, draw(&turned, 50, 7));
        assert_ne!(picked, draw(&names, 50, 8));
        assert!(picked.is_sorted() && picked.iter().all(|name| names.contains(name)));
    }

    /// Survivors are reported together with the seed, so a seed must mean the same next year.
    #[test]
    fn a_seed_keeps_its_meaning() {
        let letters: Vec<String> = ('a'..='z').map(String::from).collect();
        assert_eq!(draw(&letters, 5, 1), ["d", "p", "t", "x", "z"]);
    }

    #[test]
    fn a_sample_larger_than_all_is_all_and_new_code_hardly_changes_a_sample() {
        assert_eq!(draw(&names(5), 50, 1).len(), 5);
        let (few, more) = (draw(&names(500), 50, 1), draw(&names(510), 50, 1));
        assert!(few.iter().filter(|name| more.contains(name)).count() >= 45);
    }

    #[test]
    fn the_sample_is_spread_over_the_whole_list() {
        let picked = draw(&names(1000), 200, 3);
        for part in 0..10 {
            let from = |name: &&String| name.split(':').nth(1).unwrap().parse::<u32>().unwrap() / 100 == part;
            let count = picked.iter().filter(from).count();
            assert!((8..=35).contains(&count), "{count} of part {part}");
        }
    }

    #[test]
    fn patterns_take_names_literally() {
        assert_eq!(exactly("a.rs:1:2: replace + with -"), r"^a\.rs:1:2: replace \+ with \-$");
        assert_eq!(exactly("-> Vec<\"é\"> \\"), r#"^\-> Vec<"é"> \\$"#);
    }
}
