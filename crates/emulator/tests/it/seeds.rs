//! Seeds: their form, and errors with line and column.

use hookgate_emulator::{Emulator, Seed};

use crate::Service;

/// The seed that the docs fix, word for word.
const SHOWN: &str = r#"{"workspace": {"id": "ws_1", "tier": "enterprise"}, "switches": {},
 "keys": [{"name": "ci", "key": "tk_test_admin", "scope": "admin", "expiresAt": null, "disabled": false}],
 "members": [{"id": "usr_1", "name": "Bo", "email": "bo@example.com"}],
 "dataModels": [{"id": "dm_orders", "title": "Orders", "icon": {"type": "emoji", "name": "box"}, "description": "", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
   "properties": [{"id": "prop_c", "name": "Customer", "type": "TEXT", "order": 1, "visible": true},
     {"id": "prop_s", "name": "Status", "type": "SELECT", "options": [{"value": "open", "label": "Open", "color": "green"}]},
     {"id": "prop_r", "name": "Client", "type": "RELATION", "relationConfig": {"targetDataModelId": "dm_clients", "relationshipType": "MANY_TO_ONE"}}],
   "rows": [{"id": "row_1", "data": {"prop_c": "Ada"}, "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}]},
  {"id": "dm_clients", "title": "Clients"}],
 "subscriptions": [{"id": "wh_1", "name": "mine", "url": "http://127.0.0.1:8787/webhooks", "events": ["row.created"], "dataModelId": null, "secret": "whsec_made_up_for_local_tries"}],
 "triggers": [{"workflowId": "wf_1", "method": "POST", "path": "/webhooks/wf_1", "auth": {"mode": "header", "name": "X-API-Key", "value": "k"}, "response": {"mode": "afterCompletion", "status": 200, "template": {"got": "{{trigger.body.a}}"}}}],
 "pages": [{"id": "page_1", "title": "Home"}], "blocks": [], "workflows": [], "stats": []}"#;

#[tokio::test]
async fn the_seed_of_the_docs_starts() {
    let service = Service::seeded(SHOWN).await;
    let rows = service.get("/datamodels/dm_orders/rows").await.data();
    assert_eq!(rows[0]["data"]["prop_c"], "Ada");
    assert_eq!(rows[0]["createdAt"], "2026-01-01T00:00:00Z");
}

#[tokio::test]
async fn fields_beside_the_ids_are_optional() {
    let least = r#"{"workspace": {"id": "ws_9"}, "keys": [{}], "members": [{"id": "usr_1"}],
        "dataModels": [{"id": "dm_1", "title": "T", "properties": [{"id": "prop_1", "name": "P", "type": "TEXT"}], "rows": [{"id": "row_1"}]}],
        "subscriptions": [{"id": "wh_1"}], "triggers": [{"workflowId": "wf_1"}], "pages": [{"id": "page_1", "any": 1}]}"#;
    Emulator::start(Seed::parse(least).unwrap()).await.unwrap();
    Emulator::start(Seed::parse("{}").unwrap()).await.unwrap();
    Emulator::start(Seed::empty()).await.unwrap();
}

#[test]
fn an_error_names_line_column_and_what_was_expected() {
    let mut wrong = Vec::new();
    for case in r#"2 7 expected one of `workspace` <- {\n "keis": []}
1 22 expected a string <- {"workspace": {"id": 1}}
1 16 missing field `id` <- {"workspace": {}}
1 26 expected one of `read`, `write`, `admin` <- {"keys": [{"scope": "root"}]}
2 1 expected one of tk_live_, tk_test_, mcp_ <- {"keys": [{"key":\n"sk_1"}]}
1 25 expected one such as 2026 <- {"keys": [{"expiresAt": "soon"}]}
1 28 expected one of on, off <- {"switches": {"rateLimit": "never"}}
1 23 expected one of apiEmits <- {"switches": {"rate": "on"}}
1 12 missing field `id`, expected a string <- {"pages": [{"title": "x"}]}
2 10 occurs twice <- {"members": [{"id": "u"},\n  {"id": "u"}]}
2 16 expected each method once <- {"triggers": [{"workflowId": "a"},\n{"workflowId": "a"}]}
1 32 expected <- {"members": [{"id": "ä€😀", "nme": 1}]}
1 2 expected a JSON object <-  []
1 4 trailing <- {} x
1 1 EOF <- 
3 38 expects a number <- {"dataModels": [{"id": "dm_1", "title": "T",\n "properties": [{"id": "p", "name": "P", "type": "NUMBER"}],\n  "rows": [{"id": "r", "data": {"p": "1"}}]}]}
1 94 property "P": `type` is the string "EMOJI", expected one of TEXT <- {"dataModels": [{"id": "dm_1", "title": "T", "properties": [{"id": "p", "name": "P", "type": "EMOJI"}]}]}"#
        .lines()
    {
        let (told, text) = case.split_once(" <- ").unwrap();
        let (place, expected) = told.split_at(told.match_indices(' ').nth(1).unwrap().0);
        let error = Seed::parse(&text.replace("\\n", "\n")).unwrap_err();
        assert!(error.to_string().contains(expected.trim()), "{error}");
        let is_there = format!("{} {}", error.line(), error.column()) == place;
        wrong.extend((!is_there).then(|| error.to_string()));
    }
    assert_eq!(wrong, [""; 0]);
}

/// A seed is held to what the API takes: a snapshot of it is a seed.
#[test]
fn properties_that_cannot_be_have_their_place_and_their_name_in_a_seed() {
    let place = |part: &str, properties: &str| {
        let before = "{\"dataModels\": [{\"id\": \"dm_1\", \"title\": \"T\",\n \"properties\": ";
        let error = Seed::parse(&format!("{before}{properties}}}]}}")).unwrap_err();
        let line = format!(" \"properties\": {properties}");
        let column = line.rfind(part).unwrap() + 1;
        assert_eq!((error.line(), error.column()), (2, column), "{error}");
        let place = format!("line 2, column {column}: ");
        error.to_string().strip_prefix(&place).unwrap().to_owned()
    };
    let text = r#"{"id": "p", "name": "A", "type": "TEXT"}"#;
    // The part at which the error is, the property, and the message.
    for case in r#""A" # "name": "A", "type": "TEXT" # property "A": `name` is "A", which another property has, expected each name once
" A" # "name": " A", "type": "TEXT" # property " A": `name` is " A", and another property has "A", expected more than white space to differ
"  " # "name": "  ", "type": "TEXT" # property 1: `name` is "  ", expected more than white space
{"id": "q" # "type": "TEXT" # property 1: `name` is missing, expected a string
7 # "name": "B", "type": 7 # property "B": `type` is a number, expected one of TEXT, NUMBER, DATE, SELECT, MULTI_SELECT, CHECKBOX, RELATION, FILE, CURRENCY
[] # "name": "S", "type": "SELECT", "options": [] # property "S": `options` is missing, expected at least one option of a SELECT
"" # "name": "S", "type": "SELECT", "options": [{"value": ""}] # property "S": `options` item 0: `value` is "", expected more than white space
"x" # "name": "S", "type": "SELECT", "options": [{"value": "x"}, {"value": "x"}] # property "S": `options` item 1: `value` is "x", which another option has, expected each value once
{} # "name": "S", "type": "SELECT", "options": [{}] # property "S": `options` item 0: `value` is missing, expected a string
"dm_2" # "name": "R", "type": "RELATION", "relationConfig": {"targetDataModelId": "dm_2"} # property "R": `relationConfig` names the data model "dm_2", which does not exist, expected one that does"#
        .lines()
    {
        let [part, fields, said] = case.split(" # ").collect::<Vec<_>>()[..] else {
            panic!("{case}")
        };
        let properties = format!(r#"[{text}, {{"id": "q", {fields}}}]"#);
        assert_eq!(place(part, &properties), said);
    }
    let told = place(r#""q""#, &format!(r#"[{text}, "q"]"#));
    assert_eq!(
        told,
        r#"property 1 is the string "q", expected an object of id, name, type, order, visible, options, relationConfig"#
    );
    let told = place("{}", "{}");
    assert_eq!(
        told,
        "`properties` is an object, expected an array of properties"
    );
    let own = r#"{"id": "q", "name": "R", "type": "RELATION", "relationConfig": {"targetDataModelId": "dm_1", "relationshipType": "MANY"}}"#;
    let model = format!(r#"{{"id": "dm_1", "title": "T", "properties": [{own}]}}"#);
    Seed::parse(&format!(r#"{{"dataModels": [{model}]}}"#)).unwrap();
    for (title, icon, said) in [
        (
            r#"" ""#,
            "{}",
            r#"`title` is " ", expected more than white space"#,
        ),
        (
            r#""T""#,
            r#"{"type": 1}"#,
            "`icon`: `type` is a number, expected a string",
        ),
    ] {
        let model = format!(r#"{{"id": "dm_1", "title": {title}, "icon": {icon}}}"#);
        let told = Seed::parse(&format!(r#"{{"dataModels": [{model}]}}"#)).unwrap_err();
        assert!(told.to_string().ends_with(said), "{told}");
    }
}

/// Each part of a sound seed is left out, doubled, cut off or made another value: what is refused
/// is refused with a place and with what was expected.
#[test]
fn every_error_has_a_place_and_says_what_was_expected() {
    let values =
        r#"null 7 -1 "" "x" true [] {} [[]] CONTROL 1e999 "\ud800""#.replace("CONTROL", "\u{1}");
    let mut refused = 0;
    let mut check = |text: &str| {
        if let Err(error) = Seed::parse(text) {
            let told = error.to_string();
            assert!(told.contains("expect"), "{told}\n{text}");
            let line = text.lines().nth(error.line() - 1).unwrap_or_default();
            let columns = line.chars().count().max(1) + 1;
            assert!((1..=columns).contains(&error.column()), "{told}\n{text}");
            refused += 1;
        }
    };
    for (at, char) in SHOWN.char_indices() {
        if !":,[{]}\"".contains(char) {
            continue;
        }
        check(&SHOWN[..at]);
        check(&format!("{}{}", &SHOWN[..at], &SHOWN[at + 1..]));
        check(&format!("{}{char}{}", &SHOWN[..at], &SHOWN[at..]));
        let rest = &SHOWN[at + 1..];
        let end = rest.find([',', ']', '}']).unwrap_or_default();
        for value in values.split(' ').filter(|_| char == ':') {
            check(&format!("{}: {value}{}", &SHOWN[..at], &rest[end..]));
        }
    }
    assert!(refused > 1_000, "{refused}");
}
