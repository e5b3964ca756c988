package import Server
import Message
import JSON

/// Reads the body of `POST /explain`: `{"method": "GET", "url": "http://…", "fields": ["Name: value"], "user": "…",
/// "client": "192.0.2.1"}`, of which only `url` is required.
package func explainQuestion(body: [UInt8]) throws(ExplainError) -> ExplainQuestion {
    let value: JSONValue
    do throws(JSONError) {
        value = try JSONValue(parsing: body)
    } catch {
        throw ExplainError(message: "the body is not JSON: \(error.text)")
    }
    guard let members = value.members else { throw ExplainError(message: "the body must be a JSON object") }
    var question = ExplainQuestion(target: "")
    for member in members {
        switch member.name {
        case "method": question.method = try text(member)
        case "url": question.target = try text(member)
        case "user": question.user = try text(member)
        case "client":
            guard let address = IPAddress(strict: try text(member).utf8) else {
                throw ExplainError(message: "\"client\" must be an address")
            }
            question.client = address
        case "fields":
            guard let lines = member.value.elements?.map(\.text), lines.allSatisfy({ $0 != nil }) else {
                throw ExplainError(message: "\"fields\" must be a list of field lines")
            }
            question.fields = lines.compactMap { $0 }
        default:
            throw ExplainError(message: "\"\(member.name)\" is not known here: method, url, fields, user, client are")
        }
    }
    guard !question.target.isEmpty else { throw ExplainError(message: "name the \"url\"") }
    return question
}

private func text(_ member: JSONValue.Member) throws(ExplainError) -> String {
    guard let text = member.value.text, !text.isEmpty else {
        throw ExplainError(message: "\"\(member.name)\" must be text")
    }
    return text
}

extension Explanation {
    /// The body of an answer to `POST /explain`.
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("decision", decision.rawValue)
            writer.member("reason", reason)
            writer.key("sections")
            writer.array { writer in
                for section in sections {
                    writer.object { writer in
                        writer.member("name", section.name)
                        writer.key("lines")
                        writer.array { writer in
                            for line in section.lines {
                                writer.object {
                                    $0.member("name", line.name)
                                    $0.member("value", line.value)
                                }
                            }
                        }
                    }
                }
            }
        }
        return writer.bytes
    }
}
