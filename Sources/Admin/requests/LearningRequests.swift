import Access
import Learning
import Message
import Rules

/// The body of `POST /learn/start`: `{"job": NAME, "client": ADDRESS, "user": NAME, "listener": NAME, "allow": true, "for": AGE}`. Only the first must be there.
struct LearningStart {
    let job: String
    let scope: JobScope
    let allows: Bool
    let lifetime: Seconds?

    /// What is let through without another word about the time.
    static let allowanceDefault = Seconds(3600)
    static let allowanceMax = Seconds(86_400)

    init(_ body: [UInt8]) throws(SelectionError) {
        let members = try textMembers(body, among: ["job", "client", "user", "listener", "allow", "for"])
        job = try checkedJobName(members["job"])
        let client = try members["client"].map { (text) throws(SelectionError) in
            guard let range = AddressRange(text) else {
                throw SelectionError(
                    message: "\"client\" must be an address or a network, such as 10.2.0.17 or 10.2.0.0/16")
            }
            return range
        }
        let user = members["user"]
        if let user, user.isEmpty || user.utf8.count > 255 {
            throw SelectionError(message: "\"user\" must be the name of a user")
        }
        scope = JobScope(client: client, user: user, listener: members["listener"])
        guard members["allow"] == nil || members["allow"] == "yes" else {
            throw SelectionError(message: "\"allow\" is \"yes\", or absent")
        }
        allows = members["allow"] != nil
        let written = try members["for"].map { (text) throws(SelectionError) in
            guard let span = span(text), span > .zero else {
                throw SelectionError(message: "\"for\" must be a span of time such as 90s, 30m, 12h or 7d")
            }
            return span
        }
        guard allows else {
            lifetime = written
            return
        }
        // Whose requests are let through is never left open, nor for how long.
        guard !scope.isEverybody else {
            throw SelectionError(
                message:
                    "\"allow\" needs \"client\", \"user\" or \"listener\": it lets through what the rules deny")
        }
        if let client, client.isEverything {
            throw SelectionError(message: "\"allow\" is for one client or a network, not for all of them")
        }
        let allowance = written ?? Self.allowanceDefault
        guard allowance <= Self.allowanceMax else {
            throw SelectionError(message: "with \"allow\", \"for\" is 24h at most")
        }
        lifetime = allowance
    }

    func job(at now: Moment) -> ActiveJob {
        ActiveJob(job: job, scope: scope, allows: allows, endsAt: lifetime.map { Expiry(after: $0, from: now) })
    }
}

/// The body of `POST /learn/stop` and `/learn/forget`: `{"job": NAME}`.
func learningJob(_ body: [UInt8]) throws(SelectionError) -> String {
    try checkedJobName(try textMembers(body, among: ["job"])["job"])
}

/// `job=NAME` of `GET /learn/show`.
func learningJob(ofQuery query: String) throws(SelectionError) -> String {
    let members = try formMembers(query.utf8)
    guard members.count == 1, members[0].name == "job" else {
        throw SelectionError(message: "the query is job=NAME")
    }
    return try checkedJobName(members[0].value)
}

private func checkedJobName(_ name: String?) throws(SelectionError) -> String {
    guard let name else { throw SelectionError(message: "\"job\" is missing") }
    guard isJobName(name) else {
        throw SelectionError(
            message: "\"job\" must have 1 to 64 letters, digits, \".\", \"-\" and \"_\", the first a letter or a digit")
    }
    return name
}
