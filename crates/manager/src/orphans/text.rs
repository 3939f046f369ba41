//! What is left over, in words.

use std::fmt::Write;

use super::{Orphan, Orphans};

impl Orphans {
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for Orphan { cloud, id, name, certain, because } in &self.orphans {
            let sure = if *certain { "left over" } else { "possibly left over" };
            let _ = writeln!(text, "{sure}: {name} ({cloud}, id {id}): no Service has it; {because}");
        }
        for name in &self.deleted {
            let _ = writeln!(text, "deleted: {name}");
        }
        for refused in &self.refused {
            let _ = writeln!(text, "not deleted: {}: {}", refused.what, refused.why);
        }
        for unknown in &self.unknown {
            let _ = writeln!(text, "not known: {}: {}", unknown.what, unknown.why);
        }
        let certain = self.orphans.iter().filter(|one| one.certain).count();
        let possible = self.orphans.len() - certain;
        let _ =
            writeln!(text, "Left over: {certain}. Possibly: {possible}. Deleted: {}.", self.deleted.len());
        text
    }
}
