import Message

/// What an answer says to caches, as the origin means it. Times on the origin's clock.
struct Description: Equatable {
    /// nil: no `Cache-Control`.
    var directives: OriginDirectives?
    var expires: Int64?
    var date: Int64?
    var age: Int64?
    var eTag: String?
    var lastModified: Int64?

    /// As a 304 or a HEAD that came at `received`, on the cache's clock, leaves it (RFC 9111 §3.2, §4.3.4).
    func updated(by newer: Description, received: Int64) -> Description {
        Description(
            directives: newer.directives ?? directives, expires: newer.expires ?? expires, date: newer.date ?? received,
            age: newer.age, eTag: newer.eTag ?? eTag, lastModified: newer.lastModified ?? lastModified)
    }
}

/// One answer of the origin: what it was to, what it says, and what will come of it before the connection breaks.
final class OriginAnswer {
    let id: Int
    let request: ClientRequest
    /// When the origin made it: the number of the step, and its clock.
    let step: Int
    let status: UInt16
    /// What it is of, or speaks of; nil: of nothing a cache may keep.
    let representation: Representation?
    let description: Description
    let fields: Fields
    /// All that it would send.
    let body: [UInt8]
    /// Content-Length is sent; otherwise it is chunked.
    let tellsLength: Bool
    /// The connection breaks after so many bytes.
    let cut: Int?
    /// The body is longer or shorter than `Content-Range` says.
    let lies: Bool
    let interimCount: Int

    /// When its head came to the cache: step and, on the cache's clock, the times of request and response.
    var receivedStep: Int?
    var requestTime = WallTime(secondsSinceEpoch: 0)
    var responseTime = WallTime(secondsSinceEpoch: 0)

    init(
        id: Int, request: ClientRequest, step: Int, status: UInt16, representation: Representation?,
        description: Description, fields: Fields, body: [UInt8], tellsLength: Bool, cut: Int?, lies: Bool,
        interimCount: Int
    ) {
        self.id = id
        self.request = request
        self.step = step
        self.status = status
        self.representation = representation
        self.description = description
        self.fields = fields
        self.body = body
        self.tellsLength = tellsLength
        self.cut = cut
        self.lies = lies
        self.interimCount = interimCount
    }

    var summary: String {
        let lines = fields.lines.map {
            String(decoding: fields.name(of: $0), as: UTF8.self) + ": "
                + String(decoding: fields.value(of: $0), as: UTF8.self)
        }
        let what = representation.map { "v\($0.version) \($0.language)\($0.isGzip ? " gzip" : "")" } ?? "-"
        return "answer \(id): \(status) \(what) \(body.count) bytes\(cut.map { ", cut after \($0)" } ?? "")  "
            + lines.joined(separator: " | ")
    }
}
