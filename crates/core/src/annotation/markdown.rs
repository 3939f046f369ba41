//! The reference documentation, made from the declarations.

use super::{
    key::{Fallback, Row},
    table::Table,
};

const HEAD: &str = "| annotation | type | default | impact | description |\n|---|---|---|---|---|\n";

impl Table {
    /// The table as Markdown, one line for each annotation in the order of declaration, retired ones last. Empty for
    /// a table without annotations.
    pub fn to_markdown(&self) -> String {
        let rows = self.entries.iter().map(|entry| line(&entry.row()));
        let retired = self
            .retired
            .iter()
            .map(|retired| format!("| `{}` | | | | No effect: {} |\n", retired.name, cell(retired.why)));
        let lines: String = rows.chain(retired).collect();
        if lines.is_empty() { lines } else { format!("{HEAD}{lines}") }
    }
}

fn line(row: &Row) -> String {
    let names: Vec<_> = row.spellings.iter().map(|spelling| format!("`{}`", spelling.name)).collect();
    let default = match row.fallback {
        Fallback::None => "none".to_owned(),
        Fallback::Text("") => "empty".to_owned(),
        Fallback::Text(text) => format!("`{}`", cell(text)),
        Fallback::Derived(how) => cell(how),
    };
    let impact = row.impact.map_or_else(|| "–".to_owned(), |impact| impact.to_string());
    let recorded = if row.recorded { "Written by cloudberth. " } else { "" };
    let (names, expects, about) = (names.join(" or "), cell(&row.expects), cell(row.about));
    format!("| {names} | {expects} | {default} | {impact} | {recorded}{about} |\n")
}

/// Text that cannot break out of its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Alias, Key, OneOf, Retired, Text},
        *,
    };
    use crate::lb::Impact;

    #[test]
    fn the_documentation_repeats_the_declarations() {
        static POLICY: Key<OneOf<u8>> = Key::new("x.io/policy", OneOf::exact(&[("a", 1), ("b", 2)]))
            .aliases(&[Alias::new("x.io/old-policy")])
            .default("a")
            .impact(Impact::Minimal)
            .about("Either this | or that.");
        static ID: Key<Text> = Key::new("x.io/id", Text).recorded().about("Which one\nit is.");
        static ZONE: Key<Text> = Key::new("x.io/zone", Text).derived("the nodes' zone").about("Where.");
        static HOST: Key<Text> = Key::new("x.io/host", Text).default("").about("Name.");
        static TABLE: Table = Table::new(&[&POLICY, &ID, &ZONE, &HOST])
            .retired(&[Retired { name: "x.io/buffer", why: "sized by the cloud." }]);
        let want = "\
| annotation | type | default | impact | description |
|---|---|---|---|---|
| `x.io/policy` or `x.io/old-policy` | one of a, b | `a` | minimal | Either this \\| or that. |
| `x.io/id` | text | none | – | Written by cloudberth. Which one it is. |
| `x.io/zone` | text | the nodes' zone | – | Where. |
| `x.io/host` | text | empty | – | Name. |
| `x.io/buffer` | | | | No effect: sized by the cloud. |
";
        assert_eq!(TABLE.to_markdown(), want);
        assert_eq!(Table::new(&[]).to_markdown(), "");
    }
}
