//! Templates with expressions about a trigger's call: `{{trigger.body.a.b}}`, `{{trigger.headers.x}}`, `{{trigger.query.y}}`.

use serde_json::{Map, Value};

/// A longer result is refused.
const LONGEST: usize = 16 << 20;

/// The result is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Evaluates a template. `trigger` has `body`, `headers` and `query`.
///
/// A text that is one expression becomes its value, with its type, and null where there is none. Expressions within a text become
/// text: strings as they are, other values as JSON, and nothing where there is none. Other text is not changed.
pub(super) fn evaluated(template: &Value, trigger: &Value) -> Result<Value, TooLong> {
    let mut room = LONGEST;
    evaluate(template, trigger, &mut room)
}

fn evaluate(template: &Value, trigger: &Value, room: &mut usize) -> Result<Value, TooLong> {
    Ok(match template {
        Value::String(text) => of_text(text, trigger, room)?,
        Value::Array(items) => {
            let items = items.iter().map(|item| evaluate(item, trigger, room));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let value = evaluate(value, trigger, room)?;
                Ok((name.clone(), value))
            });
            Value::Object(fields.collect::<Result<Map<_, _>, _>>()?)
        }
        other => other.clone(),
    })
}

fn of_text(text: &str, trigger: &Value, room: &mut usize) -> Result<Value, TooLong> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else {
            break;
        };
        let end = start + length + 2;
        let Some(path) = path(&rest[start + 2..end - 2]) else {
            // Perhaps an expression begins one character later.
            let next = start + 1;
            out.push_str(&rest[..next]);
            rest = &rest[next..];
            continue;
        };
        let value = found(trigger, &path);
        if start == 0 && end == rest.len() && rest.len() == text.len() {
            let value = value.unwrap_or(&Value::Null);
            take(room, length_of(value))?;
            return Ok(value.clone());
        }
        let shown = match value {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        take(room, start + shown.len())?;
        out.push_str(&rest[..start]);
        out.push_str(&shown);
        rest = &rest[end..];
    }
    take(room, rest.len())?;
    out.push_str(rest);
    Ok(Value::String(out))
}

/// Reads `trigger.body.a[0].b` as `body`, `a`, `0`, `b`. `None` if it is not an expression about the trigger.
fn path(expression: &str) -> Option<Vec<&str>> {
    let mut parts = expression.trim().split('.');
    if parts.next() != Some("trigger") {
        return None;
    }
    let mut path = Vec::new();
    for part in parts {
        let (name, places) = part.split_once('[').map_or((part, None), |(name, places)| {
            (name, places.strip_suffix(']'))
        });
        path.push(name);
        path.extend(places.into_iter().flat_map(|places| places.split("][")));
    }
    let root = path.first()?;
    matches!(*root, "body" | "headers" | "query").then_some(path)
}

fn found<'a>(trigger: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(trigger, |value, name| match value {
        Value::Object(fields) => fields.get(*name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// About as long as the value is as JSON.
fn length_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| 1 + length_of(item)).sum::<usize>() + 2,
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| name.len() + 4 + length_of(value))
                .sum::<usize>()
                + 2
        }
    }
}

fn take(room: &mut usize, length: usize) -> Result<(), TooLong> {
    *room = room.checked_sub(length).ok_or(TooLong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(template: Value) -> Value {
        let trigger = json!({
            "body": { "a": { "b": 5, "c": [1, { "d": "deep" }] }, "text": "x", "null": null, "yes": true, "1": "one" },
            "headers": { "x-key": "k", "user-agent": "curl" },
            "query": { "from": "shop", "tag": ["a", "b"] },
        });
        evaluated(&template, &trigger).unwrap()
    }

    #[test]
    fn one_expression_keeps_the_type() {
        for (text, value) in [
            ("{{trigger.body.a.b}}", json!(5)),
            ("{{ trigger.body.a.b }}", json!(5)),
            ("{{trigger.body.a.c}}", json!([1, { "d": "deep" }])),
            ("{{trigger.body.a.c.1.d}}", json!("deep")),
            ("{{trigger.body.a.c[1].d}}", json!("deep")),
            ("{{trigger.body.yes}}", json!(true)),
            ("{{trigger.body.null}}", json!(null)),
            ("{{trigger.body.1}}", json!("one")),
            ("{{trigger.headers.x-key}}", json!("k")),
            (
                "{{trigger.headers}}",
                json!({ "x-key": "k", "user-agent": "curl" }),
            ),
            ("{{trigger.query.from}}", json!("shop")),
            ("{{trigger.query.tag}}", json!(["a", "b"])),
            ("{{trigger.query.tag[0]}}", json!("a")),
            // Missing ones, and names in upper case, which headers in expressions never have.
            ("{{trigger.body.none}}", json!(null)),
            ("{{trigger.body.a.b.c}}", json!(null)),
            ("{{trigger.body.a.c.9}}", json!(null)),
            ("{{trigger.body.a.c.x}}", json!(null)),
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
            ("{{trigger.query.tag}}!", r#"["a","b"]!"#),
            ("ä{{trigger.body.text}}ö", "äxö"),
            ("{{{trigger.body.text}}}", "{x}"),
            // No expressions about the trigger.
            ("plain", "plain"),
            ("", ""),
            ("{{trigger}}", "{{trigger}}"),
            ("{{trigger.bod}}", "{{trigger.bod}}"),
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
        let out = evaluated(&json!("<{{trigger.body.a}}>"), &trigger).unwrap();
        assert_eq!(out, json!("<{{trigger.headers.x}}>"));
    }

    #[test]
    fn a_result_is_bounded() {
        let trigger = json!({ "body": "x".repeat(1 << 20) });
        for one in ["{{trigger.body}}", " {{trigger.body}}"] {
            let template = json!(vec![one; 15]);
            assert!(evaluated(&template, &trigger).is_ok());
            let template = json!(vec![one; 17]);
            assert_eq!(evaluated(&template, &trigger), Err(TooLong));
        }
    }
}
