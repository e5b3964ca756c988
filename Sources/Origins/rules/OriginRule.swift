package import Routing
package import Access
package import Rules

/// How long Larder waits for an origin, and how often it asks.
///
/// A class: all requests for which a rule holds share one object.
package final class OriginTerms: Sendable {
    /// For a connection: its name and all its addresses together, then as long again for each TLS handshake and each answer of a next proxy.
    package let connect: Duration
    /// For the first byte of a response, from the last byte of the request.
    package let firstByte: Duration
    /// For the next piece of a body.
    package let idle: Duration
    /// For the whole response, from the moment at which the origin is asked. Nil: without limit.
    package let total: Duration?
    /// How often a request is sent again after it failed for a reason that may pass.
    package let retriesMax: Int
    package let connections: ConnectionTerms
    // Of `connections`, each by itself: most requests read them, and reading one through the structure copies all of it.
    package let dialling: Dialling
    package let mayPersist: Bool
    package let isHTTP10: Bool
    package let carriesBodies: Bool
    /// How long a connection that is not used is kept.
    package let keptFor: Duration
    /// How fast bytes may come, in bytes per second, for all requests for which the rule holds together. Nil: without a limit of its own.
    package let bandwidth: UInt64?
    package let tls: TLSProfile
    /// In the order in which they are made.
    package let fields: [FieldChange]
    /// Content of requests is sent with gzip where that is possible.
    package let encodesRequests: Bool
    /// How many redirects are followed for one request of a client. Nil: clients get them.
    package let redirectsMax: Int?
    /// Nil: cookies are passed on as they are.
    package let cookies: CookieUse?
    /// The position in `origins`, from 1. Nil if no rule holds.
    package let rule: Int?

    package init(
        connect: Duration, firstByte: Duration, idle: Duration, total: Duration?, retriesMax: Int,
        connections: ConnectionTerms = ConnectionTerms(countMax: 256, idle: .seconds(60)), bandwidth: UInt64? = nil,
        tls: TLSProfile = .general, fields: [FieldChange] = [], encodesRequests: Bool = false,
        redirectsMax: Int? = nil, cookies: CookieUse? = nil, rule: Int? = nil
    ) {
        self.connect = connect
        self.firstByte = firstByte
        self.idle = idle
        self.total = total
        self.retriesMax = retriesMax
        self.connections = connections
        dialling = connections.dialling
        mayPersist = connections.mayPersist
        isHTTP10 = connections.isHTTP10
        carriesBodies = connections.carriesBodies
        keptFor = connections.idle
        self.bandwidth = bandwidth
        self.tls = tls
        self.fields = fields
        self.encodesRequests = encodesRequests
        self.redirectsMax = redirectsMax
        self.cookies = cookies
        self.rule = rule
    }
}

extension OriginTerms: CustomStringConvertible {
    /// `connect 2s, first byte 600s, idle 60s, no limit for the whole, 1 retry`.
    package var description: String {
        let whole = total.map { "whole \(seconds($0))" } ?? "no limit for the whole"
        return "connect \(seconds(connect)), first byte \(seconds(firstByte)), idle \(seconds(idle)), \(whole), "
            + (retriesMax == 1 ? "1 retry" : "\(retriesMax) retries")
            + "; connections: \(connections.described)"
            + (bandwidth == nil ? "" : "; a limit of the rate")
            + (encodesRequests ? "; requests with gzip" : "")
            + (redirectsMax.map { "; redirects followed, at most \($0)" } ?? "")
            + (cookies.map { "; \($0)" } ?? "")
            + (fields.isEmpty ? "" : "; " + fields.map(\.description).joined(separator: ", "))
    }
}

extension ConnectionTerms {
    /// `at most 256, kept for 60s`.
    fileprivate var described: String {
        let parts: [String?] = [
            "at most \(countMax)",
            isHTTP10 ? "HTTP/1.0" : persists ? "kept for \(seconds(idle))" : "for one request each",
            carriesBodies && mayPersist ? "used again for bodies" : nil, "\(dialling)",
        ]
        return parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: ", ")
    }
}

/// `1.5s`.
private func seconds(_ duration: Duration) -> String {
    let (whole, parts) = duration.components
    return parts == 0 ? "\(whole)s" : "\(Double(whole) + Double(parts / 1_000_000_000_000_000) / 1000)s"
}

/// One rule of `origins`. What it leaves out is as for all origins.
package struct OriginRule: Equatable, Sendable {
    /// Time limits that replace those of `timeouts`.
    package struct Timeouts: Equatable, Sendable {
        package var connect: Duration?
        package var firstByte: Duration?
        package var idle: Duration?
        /// `.some(nil)`: without limit.
        package var total: Duration??

        package init() {}
    }

    /// What replaces parts of `ConnectionTerms`.
    package struct Connections: Equatable, Sendable {
        package var countMax: Int?
        package var persists: Bool?
        package var idle: Duration?
        package var carriesBodies: Bool?
        package var isHTTP10: Bool?
        package var dialling: Dialling?

        package init() {}

        func terms(over general: ConnectionTerms) -> ConnectionTerms {
            var terms = general
            terms.countMax = countMax ?? general.countMax
            terms.persists = persists ?? general.persists
            terms.idle = idle ?? general.idle
            terms.carriesBodies = carriesBodies ?? general.carriesBodies
            terms.isHTTP10 = isHTTP10 ?? general.isHTTP10
            terms.dialling = dialling ?? general.dialling
            return terms
        }
    }

    package var conditions: RuleConditions
    package var timeouts: Timeouts
    package var connections: Connections
    package var retriesMax: Int?
    /// In bytes per second.
    package var bandwidth: UInt64?
    package var tls: OriginTLS?
    package var fields: [FieldChange]
    package var encodesRequests: Bool
    /// Nil: clients get redirects.
    package var redirectsMax: Int?
    package var cookies: CookieUse?
    /// The position in the list, from 1. `explain` names the rule by it.
    package var number: Int
    /// The line in the configuration file; 0 if it does not come from a file.
    package var line: Int

    package init(
        _ conditions: RuleConditions, timeouts: Timeouts = Timeouts(), connections: Connections = Connections(),
        retriesMax: Int? = nil, bandwidth: UInt64? = nil, tls: OriginTLS? = nil, fields: [FieldChange] = [],
        encodesRequests: Bool = false, redirectsMax: Int? = nil, cookies: CookieUse? = nil, number: Int, line: Int = 0
    ) {
        self.conditions = conditions
        self.timeouts = timeouts
        self.connections = connections
        self.retriesMax = retriesMax
        self.bandwidth = bandwidth
        self.tls = tls
        self.fields = fields
        self.encodesRequests = encodesRequests
        self.redirectsMax = redirectsMax
        self.cookies = cookies
        self.number = number
        self.line = line
    }

    /// The value of `redirects: follow`. Mirrors and releases take one to three; what takes more goes round in circles.
    package static let redirectsMaxDefault = 5
    package static let redirectsMaxBounds = 1...20

    /// Whether the rule gives a request something that requests for other paths must not have: a certificate that proves who Larder is, cookies,
    /// fields, or trust in an origin that is not proven.
    var grants: Bool { tls?.grants == true || cookies != nil || !fields.isEmpty || redirectsMax != nil }

    func terms(over general: OriginTerms, _ profile: TLSProfile?) -> OriginTerms {
        OriginTerms(
            connect: timeouts.connect ?? general.connect, firstByte: timeouts.firstByte ?? general.firstByte,
            idle: timeouts.idle ?? general.idle, total: timeouts.total ?? general.total,
            retriesMax: retriesMax ?? general.retriesMax, connections: connections.terms(over: general.connections),
            bandwidth: bandwidth, tls: profile ?? general.tls,
            fields: fields,
            encodesRequests: encodesRequests, redirectsMax: redirectsMax, cookies: cookies, rule: number)
    }
}

/// The terms for each request: those of the first rule that matches, and the general ones if none does.
package struct OriginTable: Sendable {
    package let general: OriginTerms
    /// Whether any rule follows redirects.
    package let followsRedirects: Bool
    /// Whether any rule changes the fields of requests.
    package let changesFields: Bool
    /// Whether any rule is for some clients alone.
    package let dependsOnClient: Bool
    private let rules: [Entry]

    private struct Entry: Sendable {
        let conditions: RuleConditions
        let reading: PathReading
        let terms: OriginTerms
    }

    /// - Parameter profiles: those of the rules that say something about TLS, by the number of the rule.
    package init(_ rules: [OriginRule] = [], general: OriginTerms, profiles: [Int: TLSProfile] = [:]) {
        self.general = general
        followsRedirects = rules.contains { $0.redirectsMax != nil }
        changesFields = rules.contains { !$0.fields.isEmpty }
        dependsOnClient = rules.contains(where: \.conditions.dependOnClient)
        self.rules = rules.map {
            Entry(
                conditions: $0.conditions, reading: $0.grants ? .everySpelling : .anySpelling,
                terms: $0.terms(over: general, profiles[$0.number]))
        }
    }

    /// - Parameter request: evaluated only if there are rules.
    package func terms(for request: @autoclosure () -> AccessRequest) -> OriginTerms {
        guard !rules.isEmpty else { return general }
        let request = request()
        return rules.first {
            $0.conditions.holdForRequest(request, paths: $0.reading, unreadDetails: false)
        }?.terms ?? general
    }

    /// - Parameter number: its position, from 1.
    package func terms(ofRule number: Int) -> OriginTerms? { rules.first { $0.terms.rule == number }?.terms }
}
