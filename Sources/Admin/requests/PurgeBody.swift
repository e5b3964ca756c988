import JSON

/// Reads the body of `POST /purge`: conditions, which must all hold, or `all`. `soft` and `dry_run` are optional.
///
/// JSON (`{"host": "example.org", "type": "image/*", "soft": true}`) or a form (`url=http%3A%2F%2F…&dry_run=yes`).
/// - Parameter contentType: the `Content-Type` of the request. Without it, a body that begins with `{` is JSON.
package func purgeRequest(body: [UInt8], contentType: String?) throws(SelectionError) -> PurgeRequest {
    switch try bodyFormat(body, contentType) {
    case .json: return try purgeRequest(try jsonMembers(body))
    case .form:
        // A bare `all` counts as `all=yes`.
        let members = try formMembers(body).map { ($0.name, $0.value.map { .string($0) } ?? JSONValue.bool(true)) }
        return try purgeRequest(members)
    }
}

private enum BodyFormat { case json, form }

private func bodyFormat(_ body: [UInt8], _ contentType: String?) throws(SelectionError) -> BodyFormat {
    let mediaType = contentType?.split(separator: ";").first?.filter { $0 != " " && $0 != "\t" }.lowercased()
    switch mediaType {
    case "application/json": return .json
    case "application/x-www-form-urlencoded": return .form
    case nil: return body.first == UInt8(ascii: "{") ? .json : .form
    default: throw SelectionError(message: "send application/json or application/x-www-form-urlencoded")
    }
}

private func purgeRequest(_ members: [(name: String, value: JSONValue)]) throws(SelectionError) -> PurgeRequest {
    var request = PurgeRequest(Selection())
    var isAll = false
    for (name, value) in members {
        switch name {
        case "all": isAll = try flag(value, name)
        case "soft": request.kind = try flag(value, name) ? .soft : .hard
        case "dry_run": request.dryRun = try flag(value, name)
        default: try set(name, value, in: &request.selection)
        }
    }
    // A request without conditions must say `all`: one whose conditions got lost must not empty the store.
    guard request.selection.isEverything == isAll else {
        throw SelectionError(
            message: isAll
                ? "\"all\" cannot be combined with conditions"
                : "give at least one condition (\(conditionNames)), or all")
    }
    return request
}

private func set(_ name: String, _ value: JSONValue, in selection: inout Selection) throws(SelectionError) {
    guard let key = SelectionKey(rawValue: name) else {
        throw SelectionError(
            message: "\"\(name)\" is not known here: \(conditionNames), all, soft, dry_run are")
    }
    if key == .olderThan, let seconds = value.integer { return try selection.set(key, String(seconds)) }
    guard let text = value.text else { throw SelectionError(message: "\"\(name)\" must be text") }
    try selection.set(key, text)
}

let conditionNames = SelectionKey.allCases.map(\.rawValue).joined(separator: ", ")

/// Reads a JSON flag, or a word of a form.
private func flag(_ value: JSONValue, _ name: String) throws(SelectionError) -> Bool {
    if let flag = value.flag { return flag }
    switch value.text?.lowercased() {
    case "yes", "true", "1", "on": return true
    case "no", "false", "0", "off": return false
    default: throw SelectionError(message: "\"\(name)\" must be true or false")
    }
}

private func jsonMembers(_ body: [UInt8]) throws(SelectionError) -> [(name: String, value: JSONValue)] {
    let value: JSONValue
    do throws(JSONError) {
        value = try JSONValue(parsing: body)
    } catch {
        throw SelectionError(message: "the body is not JSON: \(error.text)")
    }
    guard let members = value.members else { throw SelectionError(message: "the body must be a JSON object") }
    return members.map { ($0.name, $0.value) }
}
