//! What the program that cloudberth replaces has left behind, in a cloud and in the cluster on it.

use serde_json::Value;

/// One way in which the replaced program was used: what a user wrote, and what that program made of it.
///
/// An implementation is written from that program's names, defaults and request bodies, without a line of ours: where
/// nothing is left to do for us, both programs agree. The three functions are called in this order, each once.
pub trait LeftBehind {
    /// The simulated cloud.
    type Cloud;

    /// What is special about this way, in a few words.
    fn case(&self) -> &str;

    /// Puts everything into an empty cloud that was there before the Service. Returns the nodes, each with its name and
    /// the rest of it as the kubelet and the replaced program left it: `metadata`, `spec` and `status`.
    fn nodes(&self, cloud: &Self::Cloud) -> Vec<(String, Value)>;

    /// The Service as its user wrote it; null where that program has no load balancers.
    fn service(&self, cloud: &Self::Cloud) -> Value;

    /// Builds what the replaced program built for the Service, which comes as the API server shows it: with its UID and
    /// its node ports. Returns what that program wrote on the Service: `metadata` and `status`.
    fn build(&self, cloud: &Self::Cloud, service: &Value) -> Value;

    /// Whether the same program would build the same again for this Service; not where somebody or something else has
    /// had a hand in it.
    fn is_usual(&self) -> bool {
        true
    }
}

/// Writes `more` over `into`, field by field; anything that is no object is replaced.
pub fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn objects_are_merged_and_everything_else_is_replaced() {
        let mut into = json!({"a": {"b": 1, "c": [1, 2]}, "d": 4});
        merge(&mut into, json!({"a": {"c": [3]}, "d": {"e": 5}}));
        assert_eq!(into, json!({"a": {"b": 1, "c": [3]}, "d": {"e": 5}}));
    }
}
