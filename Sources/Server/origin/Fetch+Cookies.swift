import Cookies
import EventLoop
import Forwarding
import Message
import Origins

/// The cookie jar of a request, as its rule of `origins` says. It is part of the key of what the request fetches (`OwnedRequest.cookies`).
///
/// A class, so that it takes the room of a reference in the many requests that have none.
final class RequestCookies {
    let use: CookieUse
    let jar: SharedCookieJar
    /// The client's own cookies go out as well, so what the origin sets is for this client: it is passed on and not learnt.
    let bringsOwn: Bool
    let origin: CookieOrigin

    init(_ use: CookieUse, _ jar: SharedCookieJar, bringsOwn: Bool, origin: CookieOrigin) {
        self.use = use
        self.jar = jar
        self.bringsOwn = bringsOwn
        self.origin = origin
    }
}

extension OwnedRequest {
    /// Sets the field `Cookie`. A TRACE has none, because it would come back with all its fields (RFC 9110 §9.3.8). Returns the number of
    /// cookies.
    func setCookies(of cookies: RequestCookies, in outgoing: inout OutgoingRequest, now: WallTime) -> Int {
        let own = cookies.bringsOwn ? fields.all(.cookie) : []
        guard method != .trace, let field = cookies.jar.field(for: cookies.origin, beside: own, now: now) else {
            outgoing.remove(.cookie)
            return 0
        }
        outgoing.set(.cookie, field.value)
        return field.count
    }
}

extension Fetch {

    /// Takes the cookies that a response sets, and returns the response without them. They are the client's if it brings its own.
    func takeCookies(_ cookies: RequestCookies, from response: ReceivedResponse) -> ReceivedResponse {
        guard response.fields.contains(.setCookie), !cookies.bringsOwn else { return response }
        learnCookies(cookies, from: response)
        return response.withoutCookies
    }

    /// A 407 comes from a proxy, and not from the origin.
    private func learnCookies(_ cookies: RequestCookies, from response: ReceivedResponse) {
        guard cookies.use.learns, response.status != 407 else { return }
        for line in response.fields.all(.setCookie) {
            switch cookies.jar.set(line, from: cookies.origin, now: worker.wallTime) {
            case .success(let cookie):
                let verb = cookie.isExpired(at: worker.wallTime) ? "drops" : "keeps"
                worker.debug(.requests, request.id, "\(subject): the jar \(cookies.use.jar) \(verb) \(cookie)")
            case .failure(let rejection):
                worker.debug(
                    .requests, request.id,
                    "\(subject): the jar \(cookies.use.jar) does not take a cookie: \(rejection.text)")
            }
        }
    }
}
