/// What is wrong with the body of `POST /purge`; the text is the answer's.
package struct PurgeBodyError: Error, Equatable {
    package var message: String
}

/// Reads the body of `POST /purge`: exactly one of `url`, `prefix`, `host`, `all`, and perhaps `dry_run`.
///
/// JSON (`{"url": "http://…", "dry_run": true}`) or a form (`url=http%3A%2F%2F…&dry_run=yes`).
/// - Parameter contentType: of the request; without one a body that begins with `{` is JSON.
package func purgeRequest(body: [UInt8], contentType: String?) throws(PurgeBodyError) -> PurgeRequest {
    var members: [(name: String, value: JSONValue)] = []
    switch try bodyFormat(body, contentType) {
    case .json: members = try jsonMembers(body)
    case .form: members = try formMembers(body)
    }
    return try purgeRequest(members)
}

private enum BodyFormat { case json, form }

private func bodyFormat(_ body: [UInt8], _ contentType: String?) throws(PurgeBodyError) -> BodyFormat {
    let mediaType = contentType?.split(separator: ";").first?.filter { $0 != " " && $0 != "\t" }.lowercased()
    switch mediaType {
    case "application/json": return .json
    case "application/x-www-form-urlencoded": return .form
    case nil: return body.first == UInt8(ascii: "{") ? .json : .form
    default: throw PurgeBodyError(message: "send application/json or application/x-www-form-urlencoded")
    }
}

private func purgeRequest(_ members: [(name: String, value: JSONValue)]) throws(PurgeBodyError) -> PurgeRequest {
    var selections: [PurgeRequest.Selection] = []
    var dryRun = false
    for (name, value) in members {
        switch name {
        case "url": selections.append(.url(try absoluteURL(value, name)))
        case "prefix": selections.append(.prefix(try absoluteURL(value, name)))
        case "host": selections.append(.host(try hostName(value)))
        case "all": if try flag(value, name) { selections.append(.all) }
        case "dry_run": dryRun = try flag(value, name)
        default: throw PurgeBodyError(message: "\"\(name)\" is not known here: url, prefix, host, all, dry_run are")
        }
    }
    guard selections.count == 1, let selection = selections.first else {
        throw PurgeBodyError(message: "name exactly one of url, prefix, host, all")
    }
    return PurgeRequest(selection, dryRun: dryRun)
}

/// Text that begins like an absolute http or https URL; the cache keeps nothing else.
private func absoluteURL(_ value: JSONValue, _ name: String) throws(PurgeBodyError) -> String {
    guard let text = value.text else { throw PurgeBodyError(message: "\"\(name)\" must be text") }
    let start = text.prefix { $0 != "/" }.lowercased()
    guard start == "http:" || start == "https:", text.dropFirst(start.count).hasPrefix("//"),
        text.utf8.count > start.utf8.count + 2, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else {
        throw PurgeBodyError(message: "\"\(name)\" must be an absolute URL such as http://example.org/file")
    }
    return text
}

private func hostName(_ value: JSONValue) throws(PurgeBodyError) -> String {
    guard let text = value.text, !text.isEmpty else { throw PurgeBodyError(message: "\"host\" must be text") }
    guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "/") }) else {
        throw PurgeBodyError(message: "\"host\" must be a host name without scheme and path, such as example.org")
    }
    return text.lowercased()
}

/// A JSON flag, or the words of a form.
private func flag(_ value: JSONValue, _ name: String) throws(PurgeBodyError) -> Bool {
    if let flag = value.flag { return flag }
    switch value.text?.lowercased() {
    case "yes", "true", "1", "on": return true
    case "no", "false", "0", "off": return false
    default: throw PurgeBodyError(message: "\"\(name)\" must be true or false")
    }
}

private func jsonMembers(_ body: [UInt8]) throws(PurgeBodyError) -> [(name: String, value: JSONValue)] {
    let value: JSONValue
    do throws(JSONError) {
        value = try JSONValue(parsing: body)
    } catch {
        throw PurgeBodyError(message: "the body is not JSON: \(error.text)")
    }
    guard let members = value.members else { throw PurgeBodyError(message: "the body must be a JSON object") }
    return members.map { ($0.name, $0.value) }
}

/// `application/x-www-form-urlencoded`: pairs joined by `&`, `+` for space, percent-encoding.
private func formMembers(_ body: [UInt8]) throws(PurgeBodyError) -> [(name: String, value: JSONValue)] {
    var members: [(name: String, value: JSONValue)] = []
    for pair in body.split(separator: UInt8(ascii: "&")) {
        let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let name = try formText(parts[0])
        guard !members.contains(where: { $0.name == name }) else {
            throw PurgeBodyError(message: "\"\(name)\" occurs twice")
        }
        // A bare `all` counts as `all=yes`.
        members.append((name, parts.count == 2 ? .string(try formText(parts[1])) : .bool(true)))
    }
    return members
}

private func formText(_ bytes: ArraySlice<UInt8>) throws(PurgeBodyError) -> String {
    var text: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "+"): text.append(0x20)
        case UInt8(ascii: "%"):
            guard let high = rest.popFirst().flatMap(hexDigitValue), let low = rest.popFirst().flatMap(hexDigitValue)
            else { throw PurgeBodyError(message: "the form has a broken percent-encoding") }
            text.append(high << 4 | low)
        default: text.append(byte)
        }
    }
    guard let string = String(validating: text, as: UTF8.self) else {
        throw PurgeBodyError(message: "the form is not UTF-8")
    }
    return string
}
