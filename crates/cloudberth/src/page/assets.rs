//! What the page is made of: plain files, compiled in.

/// A file of the page.
#[derive(Debug)]
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

const fn asset(path: &'static str, kind: &'static str, text: &'static str) -> Asset {
    Asset { path, kind, text }
}

pub(super) const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const FAVICON: &str = "/favicon.ico";

const ASSETS: &[Asset] = &[
    asset("/", HTML, include_str!("assets/index.html")),
    asset("/page.css", CSS, include_str!("assets/page.css")),
    asset("/picture.css", CSS, include_str!("assets/picture.css")),
    asset("/icon.svg", SVG, include_str!("assets/icon.svg")),
    // Browsers ask for it on their own.
    asset(FAVICON, SVG, include_str!("assets/icon.svg")),
    asset("/main.js", SCRIPT, include_str!("assets/main.js")),
    asset("/balancers.js", SCRIPT, include_str!("assets/balancers.js")),
    asset("/controls.js", SCRIPT, include_str!("assets/controls.js")),
    asset("/detail.js", SCRIPT, include_str!("assets/detail.js")),
    asset("/dom.js", SCRIPT, include_str!("assets/dom.js")),
    asset("/examples.js", SCRIPT, include_str!("assets/examples.js")),
    asset("/feed.js", SCRIPT, include_str!("assets/feed.js")),
    asset("/nodes.js", SCRIPT, include_str!("assets/nodes.js")),
    asset("/wires.js", SCRIPT, include_str!("assets/wires.js")),
    asset("/words.js", SCRIPT, include_str!("assets/words.js")),
    asset("/world.js", SCRIPT, include_str!("assets/world.js")),
];

/// The file at this path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Breakage;

    /// What stands between quotes and looks like a file of ours.
    fn mentioned(text: &str) -> Vec<String> {
        let quoted = text.split(['"', '\'']).skip(1).step_by(2);
        quoted
            .filter_map(|name| name.strip_prefix("./").or_else(|| name.strip_prefix('/')))
            .filter(|name| [".js", ".css", ".svg"].iter().any(|end| name.ends_with(end)))
            .map(|name| format!("/{name}"))
            .collect()
    }

    #[test]
    fn everything_that_is_asked_for_is_there_and_nothing_else_is() {
        let mut wanted: Vec<_> = ASSETS.iter().flat_map(|asset| mentioned(asset.text)).collect();
        wanted.extend(["/", FAVICON].map(ToOwned::to_owned));
        for path in &wanted {
            assert!(find(path).is_some(), "{path} is not served");
        }
        for asset in ASSETS {
            assert!(wanted.iter().any(|path| path == asset.path), "nothing asks for {}", asset.path);
        }
    }

    #[test]
    fn nothing_comes_from_elsewhere_and_nothing_is_inline() {
        for asset in ASSETS {
            let named = asset.text.replace("http://www.w3.org/", "");
            assert!(!named.contains("://"), "{} names another server", asset.path);
            for bad in ["innerHTML", "eval(", "<style", " style=\"", " onclick", "document.write"] {
                assert!(!asset.text.contains(bad), "{} has {bad}", asset.path);
            }
        }
        let page = find("/").unwrap().text;
        assert_eq!(page.matches("<script").count(), 1, "one script, and that one has a source");
        assert!(page.contains("<script type=\"module\" src=\"/main.js\"></script>"));
    }

    #[test]
    fn the_page_knows_how_the_world_words_a_broken_cloud() {
        let controls = find("/controls.js").unwrap().text;
        for how in [Breakage::Errors, Breakage::Token, Breakage::Slow, Breakage::Lying] {
            assert!(controls.contains(how.in_words()), "{how:?}");
        }
    }
}
