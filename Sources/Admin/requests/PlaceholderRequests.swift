import Credentials
import JSON
import Message

/// Why nothing was issued.
package enum PlaceholderProblem: Error, Equatable, Sendable {
    /// There is no credential with that name for which clients hold placeholders. The names of those that there are.
    case unknownCredential([String])
    /// Its secret could not be read.
    case noSecret
    /// So many hold already.
    case full

    func text(of name: String) -> String {
        switch self {
        case .unknownCredential(let names):
            "there is no credential \(name) with the scheme placeholder"
                + (names.isEmpty ? "" : "; there is \(names.joined(separator: ", "))")
        case .noSecret: "the secret of the credential \(name) could not be read; the log of the proxy says why"
        case .full: "\(PlaceholderBook.countMax) placeholders have been issued; revoke some"
        }
    }
}

/// The body of `POST /credentials/issue`: `{"credential": NAME, "job": TEXT, "for": AGE}`. Only the first must be there.
struct IssueRequest {
    let credential: String
    let job: String?
    let lifetime: Seconds?

    init(_ body: [UInt8]) throws(SelectionError) {
        let members = try textMembers(body, among: ["credential", "job", "for"])
        guard let credential = members["credential"] else {
            throw SelectionError(message: "\"credential\" is missing")
        }
        self.credential = credential
        job = try checkedJob(members["job"])
        lifetime = try members["for"].map { (text) throws(SelectionError) in
            guard let span = span(text), span > .zero else {
                throw SelectionError(message: "\"for\" must be a span of time such as 90s, 30m, 12h or 7d")
            }
            return span
        }
    }
}

/// The body of `POST /credentials/revoke`: `{"which": TEXT, "job": TEXT}`, or one of the two. `which` is the id of a placeholder, a placeholder, or
/// the name of a credential.
struct RevokeRequest {
    let which: String?
    let job: String?

    init(_ body: [UInt8]) throws(SelectionError) {
        let members = try textMembers(body, among: ["which", "job"])
        which = members["which"]
        job = try checkedJob(members["job"])
        guard which != nil || job != nil else { throw SelectionError(message: "\"which\" or \"job\" is missing") }
    }
}

private func checkedJob(_ job: String?) throws(SelectionError) -> String? {
    guard let job else { return nil }
    guard (1...128).contains(job.utf8.count), job.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
        throw SelectionError(message: "\"job\" must have 1 to 128 bytes without spaces and control characters")
    }
    return job
}

func textMembers(_ body: [UInt8], among names: [String]) throws(SelectionError) -> [String: String] {
    guard let value = try? JSONValue(parsing: body), case .object(let members) = value else {
        throw SelectionError(message: "the body must be a JSON object")
    }
    var texts: [String: String] = [:]
    for member in members {
        guard names.contains(member.name), let text = member.value.text else {
            throw SelectionError(
                message: "\"\(member.name)\" is not one of \(names.joined(separator: ", ")), or is not a text")
        }
        texts[member.name] = text
    }
    return texts
}

extension Placeholder {
    /// The body of `GET /credentials`.
    static func json(_ placeholders: [Placeholder], now: Moment) -> [UInt8] {
        var writer = JSONWriter()
        writer.object {
            $0.key("placeholders")
            $0.array { for one in placeholders { one.write(to: &$0, now: now, showsText: false) } }
        }
        return writer.bytes
    }

    /// The body of `POST /credentials/issue`.
    func issuedJSON(now: Moment) -> [UInt8] {
        var writer = JSONWriter()
        write(to: &writer, now: now, showsText: true)
        return writer.bytes
    }

    private func write(to json: inout JSONWriter, now: Moment, showsText: Bool) {
        json.object {
            $0.member("id", id)
            $0.member("credential", credential)
            $0.key("job")
            if let job { $0.string(job) } else { $0.null() }
            if showsText { $0.member("placeholder", String(decoding: text, as: UTF8.self)) }
            $0.member("state", holds(at: now) ? "holds" : isRevoked ? "revoked" : "expired")
            $0.member("issued", rfc3339(secondsSinceEpoch: issuedAt.secondsSinceEpoch))
            $0.key("ends")
            if let endsAt {
                $0.string(rfc3339(secondsSinceEpoch: endsAt.wallTime.secondsSinceEpoch))
            } else {
                $0.null()
            }
        }
    }
}
