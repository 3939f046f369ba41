//! What a server says that has forgotten the version asked for.

use serde_json::json;

use super::{CONFIG_MAPS, config_map};
use crate::conformance::lens::names;
use crate::conformance::row::Row;

pub(super) fn rows() -> Vec<Row> {
    let three = |name| {
        ["a", "b", "c"]
            .into_iter()
            .fold(Row::new(name), |row, name| row.post(201, CONFIG_MAPS, config_map(name, &json!({}))))
    };
    vec![
        three("a page is too late, and says how to go on without the past")
            .get(200, format!("{CONFIG_MAPS}?limit=1"))
            .keep("next", "/metadata/continue")
            .delete(200, format!("{CONFIG_MAPS}/b"))
            .until(410, format!("{CONFIG_MAPS}?limit=1&continue=${{next}}"))
            .keep("next", "/metadata/continue")
            .get(200, format!("{CONFIG_MAPS}?limit=1&continue=${{next}}"))
            .through(names),
        three("an exact version is forgotten")
            .get(200, CONFIG_MAPS)
            .keep("rv", "/metadata/resourceVersion")
            .delete(200, format!("{CONFIG_MAPS}/b"))
            .until(410, format!("{CONFIG_MAPS}?resourceVersion=${{rv}}&resourceVersionMatch=Exact")),
    ]
}
