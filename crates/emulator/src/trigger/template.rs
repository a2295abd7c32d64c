//! Templates with the expressions of the specification: `{{trigger.body}}`,
//! `{{trigger.body.<path>}}`, `{{trigger.headers.<name>}}`, `{{trigger.query.<name>}}`.

use serde_json::{Map, Value};

/// Evaluates a template. `trigger` has `body`, `headers` and `query`.
///
/// A text that is one expression becomes its value, with its type, and null where there is none.
/// Expressions within a text become text: strings as they are, other values as JSON, and nothing
/// where there is none. Other text is not changed.
pub(super) fn evaluated(template: &Value, trigger: &Value) -> Value {
    match template {
        Value::String(text) => of_text(text, trigger),
        Value::Array(items) => items.iter().map(|item| evaluated(item, trigger)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), evaluated(value, trigger)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn of_text(text: &str, trigger: &Value) -> Value {
    let mut parts = text.split("{{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let expression = part
            .split_once("}}")
            .and_then(|(path, rest)| Some((found(trigger, path)?, rest)));
        match expression {
            Some((value, rest)) => {
                if out.is_empty() && part.len() + 2 == text.len() && rest.is_empty() {
                    return value.clone();
                }
                match value {
                    Value::Null => {}
                    Value::String(text) => out.push_str(text),
                    other => out.push_str(&other.to_string()),
                }
                out.push_str(rest);
            }
            None => out.extend(["{{", part]),
        }
    }
    Value::String(out)
}

/// Returns the value of `trigger.body.a.b`, null where there is none. `None` if it is not an
/// expression about the trigger.
fn found<'a>(trigger: &'a Value, expression: &str) -> Option<&'a Value> {
    let path = expression.strip_prefix("trigger.")?;
    let mut parts = path.split('.');
    let root = trigger.get(parts.next()?)?;
    let found = parts.try_fold(root, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    });
    Some(found.unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(template: Value) -> Value {
        let trigger = json!({
            "body": { "a": { "b": 5, "c": [1, { "d": "deep" }] }, "text": "x", "null": null, "yes": true, "1": "one" },
            "headers": { "x-key": "k", "user-agent": "curl" },
            "query": { "from": "shop" },
        });
        evaluated(&template, &trigger)
    }

    #[test]
    fn one_expression_keeps_the_type() {
        for (text, value) in [
            ("{{trigger.body.a.b}}", json!(5)),
            ("{{trigger.body.a.c}}", json!([1, { "d": "deep" }])),
            ("{{trigger.body.a.c.1.d}}", json!("deep")),
            ("{{trigger.body.yes}}", json!(true)),
            ("{{trigger.body.null}}", json!(null)),
            ("{{trigger.body.1}}", json!("one")),
            ("{{trigger.headers.x-key}}", json!("k")),
            (
                "{{trigger.headers}}",
                json!({ "x-key": "k", "user-agent": "curl" }),
            ),
            ("{{trigger.query.from}}", json!("shop")),
            // Missing ones, and names in upper case, which headers in expressions never have.
            ("{{trigger.body.none}}", json!(null)),
            ("{{trigger.body.a.b.c}}", json!(null)),
            ("{{trigger.body.a.c.9}}", json!(null)),
            ("{{trigger.headers.X-Key}}", json!(null)),
        ] {
            assert_eq!(of(json!(text)), value, "{text}");
        }
    }

    #[test]
    fn expressions_within_a_text_are_text() {
        for (text, out) in [
            ("{{trigger.query.from}}: {{trigger.body.a.b}}", "shop: 5"),
            (" {{trigger.body.text}}", " x"),
            ("{{trigger.body.text}}{{trigger.body.text}}", "xx"),
            ("[{{trigger.body.none}}{{trigger.body.null}}]", "[]"),
            ("{{trigger.body.a.c}}!", r#"[1,{"d":"deep"}]!"#),
            ("ä{{trigger.body.text}}ö", "äxö"),
            // No expressions about the trigger.
            ("plain", "plain"),
            ("", ""),
            ("{{trigger}}", "{{trigger}}"),
            ("{{trigger.bod}}", "{{trigger.bod}}"),
            ("{{ trigger.body.text }}", "{{ trigger.body.text }}"),
            ("{{nodes.x}} {{trigger.body.text}}", "{{nodes.x}} x"),
            ("{{trigger.body.text", "{{trigger.body.text"),
            ("}}{{", "}}{{"),
            ("{{}}", "{{}}"),
        ] {
            assert_eq!(of(json!(text)), json!(out), "{text}");
        }
    }

    #[test]
    fn templates_are_walked_and_values_are_not() {
        let template =
            json!({ "list": ["{{trigger.body.text}}", 1, null], "{{trigger.body.text}}": true });
        let out = json!({ "list": ["x", 1, null], "{{trigger.body.text}}": true });
        assert_eq!(of(template), out);
        // What a caller sends is not evaluated.
        let trigger =
            json!({ "body": { "a": "{{trigger.headers.x}}" }, "headers": { "x": "secret" } });
        let out = evaluated(&json!("<{{trigger.body.a}}>"), &trigger);
        assert_eq!(out, json!("<{{trigger.headers.x}}>"));
    }
}
