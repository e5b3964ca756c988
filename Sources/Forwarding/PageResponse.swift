package import ClientSetup
package import Message

/// The answer to a request for a page of the proxy port: the page, 304 if the client has it, or a sentence that says why there is none.
package struct PageResponse: Sendable {
    package let status: UInt16
    package let fields: Fields
    /// The content of the answer to a GET.
    package let body: [UInt8]
    /// Whether the content follows the head: not for HEAD, nor with 304.
    package let sendsBody: Bool
    /// Tells the body from all others, if it is the same for every client. Nil if it was made for this one.
    package let fixedTag: [UInt8]?

    /// Returns nil if the request is for no page, or has a body, which nobody would read.
    package init?(_ request: ReceivedRequest, pages: Pages) {
        let target = request.bytes[request.head.target.pathRange]
        let path = String(decoding: target.prefix { $0 != 0x3F }, as: UTF8.self)
        guard let name = Pages.Name(rawValue: path), !request.hasBody else { return nil }
        guard request.method == .get || request.method == .head else {
            self.init(405, "This page is read with GET or HEAD.", to: request)
            return
        }
        let place = ProxyPlace(host: request.bytes[request.head.target.hostRange], port: request.head.target.port)
        switch pages.answer(name, place: place) {
        case .page(let page): self.init(page, to: request)
        case .noAuthority:
            self.init(404, "This proxy has no certificate authority: it opens no TLS connections.", to: request)
        case .noPlace:
            self.init(400, "The Host field must be the name or the address of this proxy.", to: request)
        }
    }

    private init(_ page: Pages.Page, to request: ReceivedRequest) {
        var fields = Fields()
        fields.append(.cacheControl, literal: "no-cache")
        fields.append(.eTag, page.eTag.wire)
        let known = request.fields.joined(.ifNoneMatch).flatMap { EntityTagList(parsing: $0) }
        let isKnown = known?.containsWeak(page.eTag) ?? false
        status = isKnown ? 304 : 200
        if !isKnown {
            fields.append(.contentType, page.contentType)
            PageResponse.forbidGuessing(&fields)
        }
        self.fields = fields
        body = isKnown ? [] : page.body
        sendsBody = !isKnown && request.method != .head
        fixedTag = page.isFixed ? page.eTag.opaque : nil
    }

    private init(_ status: UInt16, _ sentence: String, to request: ReceivedRequest) {
        var fields = Fields()
        fields.append(.cacheControl, literal: "no-cache")
        fields.append(.contentType, literal: "text/plain; charset=utf-8")
        if status == 405 { fields.append(.allow, literal: "GET, HEAD") }
        self.status = status
        self.fields = fields
        body = Array((sentence + "\n").utf8)
        sendsBody = request.method != .head
        fixedTag = nil
    }

    /// No browser may take a page for something else than its type says.
    private static func forbidGuessing(_ fields: inout Fields) {
        fields.append(.other, spelling: Array("X-Content-Type-Options".utf8), Array("nosniff".utf8))
    }

    /// The length that the head announces. Nil with 304.
    package var announcedLength: Int? { status == 304 ? nil : body.count }
}
