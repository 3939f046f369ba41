//! What a person types into a sandbox.

use cloudberth::world::{Breakage, Command};

use super::hints::WORDS;

/// Reads a line; an error says what can be typed. An empty line is nothing.
pub(super) fn read(line: &str) -> Result<Option<Command>, String> {
    let words: Vec<_> = line.split_whitespace().collect();
    let name = |name: &str| name.strip_prefix("node/").unwrap_or(name).to_owned();
    let command = match words.as_slice() {
        [] => return Ok(None),
        ["add"] => Command::AddInstance,
        ["stop", node] => Command::StopInstance { name: name(node) },
        ["start", node] => Command::StartInstance { name: name(node) },
        ["destroy", node] => Command::DestroyInstance { name: name(node) },
        ["break", how] => Command::BreakCloud { how: breakage(how)? },
        ["mend"] => Command::MendCloud,
        ["kill"] => Command::KillLeader,
        ["traffic", rate] => {
            let per_second = rate.parse().map_err(|_| format!("{rate:?} is not a number of requests"))?;
            Command::Traffic { per_second }
        }
        _ => {
            let known: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
            return Err(format!("{:?} is not known; there are: {}", line.trim(), known.join(", ")));
        }
    };
    Ok(Some(command))
}

fn breakage(word: &str) -> Result<Breakage, String> {
    match word {
        "errors" => Ok(Breakage::Errors),
        "token" => Ok(Breakage::Token),
        "slow" => Ok(Breakage::Slow),
        "lying" => Ok(Breakage::Lying),
        other => {
            Err(format!("{other:?} is no way to break a cloud; there are errors, token, slow and lying"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_hints_is_understood() {
        for (word, _) in WORDS {
            let line =
                word.replace("NODE", "node-1").replace("errors|token|slow|lying", "slow").replace('N', "5");
            assert!(matches!(read(&line), Ok(Some(_))), "{line}");
        }
    }

    #[test]
    fn what_is_typed_is_read() {
        let name = || "node-1".to_owned();
        let table = [
            (" stop  node-1 ", Command::StopInstance { name: name() }),
            ("destroy node/node-1", Command::DestroyInstance { name: name() }),
            ("break lying", Command::BreakCloud { how: Breakage::Lying }),
            ("traffic 0", Command::Traffic { per_second: 0 }),
        ];
        for (line, want) in table {
            assert_eq!(read(line), Ok(Some(want)), "{line}");
        }
        assert_eq!(read("  "), Ok(None));
        for (line, want) in [
            ("stop", "there are: add, stop NODE"),
            ("break it", "no way to break"),
            ("traffic x", "not a number"),
        ] {
            assert!(read(line).unwrap_err().contains(want), "{line}");
        }
    }
}
