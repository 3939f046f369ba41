//! Strategic merge patches: lists merge by their keys, and directives say what merging alone cannot.

use serde_json::{Map, Value};

use super::json::go_map;
use super::shape::{Field, PatchRule, Shape, Shapes};
use super::status::Failure;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;
type Result<T> = std::result::Result<T, Failure>;

/// Merges `patch` into an object of the named shape.
pub(crate) fn merge(shapes: &Shapes, shape: &str, original: &Value, patch: &Value) -> Result<Value> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(Failure::bad_request("Invalid JSON document"));
    };
    let merger = Merger { shapes };
    Ok(Value::Object(merger.objects(
        original.clone(),
        patch.clone(),
        Some(&Shape::Struct(shape.to_owned())),
    )?))
}

struct Merger<'a> {
    shapes: &'a Shapes,
}

fn bad_format(what: &str) -> Failure {
    Failure::bad_request(format!("invalid patch format of {what}"))
}

fn no_merge_key(item: &Value, key: &str) -> Failure {
    Failure::unexplained(format!("map: {} does not contain declared merge key: {key}", go_map(item)))
}

fn bad_directive(directive: &Value, holder: &Object) -> Failure {
    let (directive, holder) = (go_map(directive), go_map(&Value::Object(holder.clone())));
    Failure::unexplained(format!("unknown patch type: {directive} in map: {holder}"))
}

impl Merger<'_> {
    fn field(&self, holder: Option<&Shape>, name: &str) -> Option<Field> {
        match holder?.pointee() {
            Shape::Struct(shape) => self.shapes.get(shape)?.get(name).cloned(),
            Shape::Map(inner) => Some(Field {
                name: name.to_owned(),
                number: None,
                omit: super::shape::Omit::Always,
                shape: (**inner).clone(),
                rule: PatchRule::default(),
            }),
            _ => None,
        }
    }

    fn objects(&self, mut original: Object, mut patch: Object, shape: Option<&Shape>) -> Result<Object> {
        match patch.get(PATCH) {
            None => {}
            Some(Value::String(s)) if s == "replace" => {
                patch.remove(PATCH);
                return Ok(patch);
            }
            Some(Value::String(s)) if s == "delete" => return Ok(Object::new()),
            Some(other) => return Err(bad_directive(other, &patch)),
        }
        retain_keys(&mut original, &mut patch)?;
        self.set_orders(&mut original, &mut patch, shape)?;
        for (key, value) in patch {
            if let Some(name) = directive(&key, DELETE_FROM)? {
                let items = value.as_array().ok_or_else(|| bad_format("primitive list"))?;
                if let Some(Value::Array(list)) = original.get_mut(name) {
                    list.retain(|item| !items.contains(item));
                }
                continue;
            }
            if value.is_null() {
                original.remove(&key);
                continue;
            }
            let field = self.field(shape, &key);
            let merged = match (original.remove(&key), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    Some(Value::Object(self.objects(old, new, field.as_ref().map(|f| &f.shape))?))
                }
                (Some(Value::Array(old)), Value::Array(new)) => {
                    Some(Value::Array(self.lists(old, new, field.as_ref())?))
                }
                (_, new) => without_directives(without_nulls(new)),
            };
            if let Some(merged) = merged {
                original.insert(key, merged);
            }
        }
        Ok(original)
    }

    fn lists(&self, old: Vec<Value>, new: Vec<Value>, field: Option<&Field>) -> Result<Vec<Value>> {
        let Some(field) = field.filter(|field| field.rule.merge) else {
            return Ok(new);
        };
        if old.is_empty() && new.is_empty() {
            return Ok(old);
        }
        if !old.iter().chain(&new).any(Value::is_object) {
            let mut merged = old.clone();
            for item in &new {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            return Ok(in_order(merged, &new, &old, None));
        }
        let key = field.rule.key.as_deref().ok_or_else(|| {
            Failure::unexplained(format!(
                "cannot merge lists without merge key for {}",
                field.shape.go_name()
            ))
        })?;
        let (old, new) = special_elements(old, new, key)?;
        let element = match field.shape.pointee() {
            Shape::List(inner) => Some(&**inner),
            _ => None,
        };
        let mut merged = old.clone();
        for item in &new {
            let id = item.get(key).ok_or_else(|| no_merge_key(item, key))?;
            match merged.iter_mut().find(|other| other.get(key) == Some(id)) {
                Some(Value::Object(other)) => {
                    let patch = item.as_object().cloned().unwrap_or_default();
                    *other = self.objects(std::mem::take(other), patch, element)?;
                }
                _ => merged.push(item.clone()),
            }
        }
        if let Some(item) = merged.iter().find(|item| item.get(key).is_none()) {
            return Err(no_merge_key(item, key));
        }
        Ok(in_order(merged, &new, &old, Some(key)))
    }

    /// Lists whose order the patch dictates; they are taken out of the patch once merged.
    fn set_orders(&self, original: &mut Object, patch: &mut Object, shape: Option<&Shape>) -> Result<()> {
        let directives: Vec<String> =
            patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
        for directive_key in directives {
            let name = directive(&directive_key, SET_ORDER)?.unwrap_or_default().to_owned();
            let Some(Value::Array(order)) = patch.remove(&directive_key) else {
                return Err(bad_format("setElementOrder list"));
            };
            let field = self.field(shape, &name);
            let key = field.as_ref().and_then(|field| field.rule.key.clone());
            let old = match original.get(&name) {
                Some(Value::Array(old)) => Some(old.clone()),
                Some(_) => return Err(bad_format("setElementOrder list")),
                None => None,
            };
            let new = match patch.get(&name) {
                Some(Value::Array(new)) => Some(new.clone()),
                Some(_) => return Err(bad_format("setElementOrder list")),
                None => None,
            };
            check_order(new.as_deref().unwrap_or_default(), &order, key.as_deref())?;
            let server = old.clone().unwrap_or_default();
            let merged = match (old, new) {
                (None, None) => continue,
                (Some(old), None) => old,
                (None, Some(new)) => match without_directives(Value::Array(new)) {
                    Some(Value::Array(new)) => new,
                    _ => continue,
                },
                (Some(old), Some(new)) => self.lists(old, new, field.as_ref())?,
            };
            let ordered = in_order(merged, &order, &server, key.as_deref());
            original.insert(name.clone(), Value::Array(ordered));
            patch.remove(&name);
        }
        Ok(())
    }
}

/// The field that a directive such as `$setElementOrder/ports` is about.
fn directive<'a>(key: &'a str, prefix: &str) -> Result<Option<&'a str>> {
    let Some(rest) = key.strip_prefix(prefix) else {
        return Ok(None);
    };
    let what = if prefix == SET_ORDER { "setElementOrder list" } else { "primitive list" };
    rest.strip_prefix('/').map(Some).ok_or_else(|| bad_format(what))
}

fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<()> {
    let Some(keys) = patch.remove(RETAIN) else {
        return Ok(());
    };
    let keys = keys.as_array().cloned().ok_or_else(|| bad_format("retainKeys"))?;
    let kept = |name: &str| keys.iter().any(|key| key.as_str() == Some(name));
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER) && !kept(name)
    });
    if stray {
        return Err(bad_format("retainKeys"));
    }
    original.retain(|name, _| kept(name));
    Ok(())
}

/// Carries out `$patch` elements of a list: deletions by key, or a replacement of the whole.
fn special_elements(mut old: Vec<Value>, new: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let (mut plain, mut replace) = (Vec::new(), false);
    for item in new {
        match item.get(PATCH).map(|directive| directive.as_str().unwrap_or_default()) {
            None => plain.push(item),
            Some("delete") => {
                let id = item.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                old.retain(|other| other.get(key) != Some(id));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(Failure::unexplained("merging lists cannot yet be specified in the patch"));
            }
            Some(_) => {
                let holder = item.as_object().cloned().unwrap_or_default();
                return Err(bad_directive(item.get(PATCH).unwrap_or(&Value::Null), &holder));
            }
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (old, plain) })
}

/// The patch list must name its elements in the order that it asks for.
fn check_order(new: &[Value], order: &[Value], key: Option<&str>) -> Result<()> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = order.iter();
    let plain = new.iter().filter(|item| item.get(PATCH).is_none());
    for item in plain {
        if !wanted.any(|other| same(item, other, key)) {
            let shown = |list: &[Value]| Value::Array(list.to_vec()).to_string();
            return Err(Failure::unexplained(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                shown(new),
                shown(order)
            )));
        }
    }
    Ok(())
}

fn same(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) => a.get(key).is_some() && a.get(key) == b.get(key),
        None => a == b,
    }
}

/// Elements of the patch in the patch's order, the server's own in the server's, woven together.
fn in_order(merged: Vec<Value>, order: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(item, other, key));
    let (mut patched, mut own): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    patched.sort_by_key(|item| place(order, item));
    own.sort_by_key(|item| place(server, item));
    let mut result = Vec::with_capacity(patched.len() + own.len());
    let (mut own, mut patched) = (own.into_iter().peekable(), patched.into_iter().peekable());
    loop {
        let own_first = match (own.peek(), patched.peek()) {
            (None, None) => return result,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(a), Some(b)) => matches!((place(server, a), place(server, b)), (Some(a), Some(b)) if a < b),
        };
        result.extend(if own_first { own.next() } else { patched.next() });
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect()
        }
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// What remains of a new value when nothing was there to direct; `None` when it is itself a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            Some(map.into_iter().filter_map(|(k, v)| Some((k, without_directives(v)?))).collect())
        }
        Value::Array(list) => Some(list.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests;
