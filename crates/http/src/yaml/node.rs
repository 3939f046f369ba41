//! A YAML document as a tree in which everything knows its line.

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span};

use super::Mistake;

pub(super) struct Node {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// Nothing, `null` or `~`.
    Null,
    Scalar {
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    /// Keys as they are written, with their lines; `None` for a key that is not plain text.
    Map(Vec<(Option<String>, usize, Node)>),
    /// Something that YAML allows and settings have no use for, and what to do instead.
    Odd(&'static str),
}

const ALIAS: &str = "aliases such as *name are not read here; write the value out";
const TAG: &str = "tags such as !!str are not read here; leave the tag out";

type Events<'a> = dyn Iterator<Item = Result<(Event<'a>, Span), ScanError>> + 'a;

/// The one document of a file. An empty file is nothing.
pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    let mut all = parse_all(text)?.into_iter();
    let first = all.next().unwrap_or(Node { line: 1, kind: Kind::Null });
    match all.next() {
        None => Ok(first),
        Some(second) => {
            let text = "a second document begins here; there may be one only".to_owned();
            Err(Mistake { line: second.line, field: String::new(), text })
        }
    }
}

/// The documents of a file that have anything in them.
pub(super) fn parse_all(text: &str) -> Result<Vec<Node>, Mistake> {
    let options = granit_parser::options! { emit_comments: false };
    let mut events = Parser::new_from_str_with_options(text, options);
    all_documents(&mut events).map_err(|why| Mistake {
        line: why.marker().line(),
        field: String::new(),
        text: match why.kind() {
            // The library would quote the character, which may be the first one of a secret.
            ErrorKind::UnexpectedCharacter { .. } => {
                "this is not YAML: text that begins with a special character needs quotes".to_owned()
            }
            kind => format!("this is not YAML: {kind}"),
        },
    })
}

fn all_documents(events: &mut Events<'_>) -> Result<Vec<Node>, ScanError> {
    let mut found = Vec::new();
    while let Some(next) = events.next() {
        let (event, span) = next?;
        if is_node(&event) {
            found.push(node(event, &span, events)?);
        }
    }
    Ok(found)
}

fn is_node(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(..) | Event::Alias(_) | Event::SequenceStart(..) | Event::MappingStart(..))
}

/// The node that begins with `event`. The library limits how deep nodes are nested.
fn node<'a>(event: Event<'a>, span: &Span, events: &mut Events<'a>) -> Result<Node, ScanError> {
    let line = span.start.line();
    let (tagged, kind) = match event {
        Event::Scalar(text, style, _, tag) => (tag.is_some(), scalar(text.into_owned(), style)),
        Event::SequenceStart(_, _, tag) => {
            let mut items = Vec::new();
            while let Some(item) = inner(events)? {
                items.push(item);
            }
            (tag.is_some(), Kind::List(items))
        }
        Event::MappingStart(_, _, tag) => {
            let mut entries = Vec::new();
            while let Some(key) = inner(events)? {
                let Some(value) = inner(events)? else { break };
                let text = match key.kind {
                    Kind::Scalar { text, .. } => Some(text),
                    Kind::Null | Kind::List(_) | Kind::Map(_) | Kind::Odd(_) => None,
                };
                entries.push((text, key.line, value));
            }
            (tag.is_some(), Kind::Map(entries))
        }
        _ => (false, Kind::Odd(ALIAS)),
    };
    Ok(Node { line, kind: if tagged { Kind::Odd(TAG) } else { kind } })
}

/// The next node of a list or a mapping; `None` at its end.
fn inner(events: &mut Events<'_>) -> Result<Option<Node>, ScanError> {
    while let Some(next) = events.next() {
        let (event, span) = next?;
        match event {
            Event::SequenceEnd | Event::MappingEnd => return Ok(None),
            event if is_node(&event) => return node(event, &span, events).map(Some),
            _ => {}
        }
    }
    Ok(None)
}

fn scalar(text: String, style: ScalarStyle) -> Kind {
    let plain = style == ScalarStyle::Plain;
    if plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") {
        return Kind::Null;
    }
    Kind::Scalar { text, plain }
}
