import Compression
import EventLoop
import Glibc
import Message

/// Fetches one URL after another, follows redirects, and repeats failed attempts. Used by one thread.
final class WarmFetcher {
    static let redirectsMax = 10
    /// How long an origin may ask to wait before it is asked again (RFC 9110 §10.2.3). If it is longer, the URL counts as failed.
    static let announcedPauseMax: Duration = .seconds(60)
    /// How many bytes of a page or stylesheet are scanned, before and after decompressing.
    static let scannedBytesMax = 8 << 20

    private let client: ProxyClient
    private let plan: WarmPlan

    init(client: ProxyClient, plan: WarmPlan) {
        self.client = client
        self.plan = plan
    }

    /// Returns the result, and the references if the response is a page or stylesheet.
    func fetch(_ target: WarmTarget) -> (WarmResult, [PageReference]) {
        let start = ContinuousClock.now
        var (result, references) = follow(target)
        result.milliseconds = Int64((ContinuousClock.now - start) / .milliseconds(1))
        return (result, references)
    }

    private func follow(_ target: WarmTarget) -> (WarmResult, [PageReference]) {
        var result = WarmResult(target, .failed(reason: "this is not an absolute URL"))
        guard var place = target.target else { return (result, []) }
        for _ in 0...Self.redirectsMax {
            guard let answer = ask(place, keeping: target.kind == .other ? 0 : Self.scannedBytesMax, &result) else {
                return (result, [])
            }
            guard let next = redirect(answer, from: place) else {
                result.outcome =
                    answer.status < 400
                    ? warmOutcome(answer.fields)
                    : .failed(reason: failureReason(status: answer.status, answer.fields))
                return (result, answer.status < 400 ? references(in: answer, target.kind, at: place) : [])
            }
            place = next
            result.finalURL = String(decoding: place.normalised, as: UTF8.self)
        }
        result.outcome = .failed(reason: "more than \(Self.redirectsMax) redirects")
        return (result, [])
    }

    /// Returns nil if there is no answer. `result` then says why.
    private func ask(_ place: TargetURI, keeping: Int, _ result: inout WarmResult) -> ProxyClient.Answer? {
        var pause = plan.pause
        // What the origin asks for with `Retry-After`.
        var announced = Duration.zero
        for attempt in 0...plan.retries {
            if attempt > 0 {
                sleep(max(pause, announced))
                pause = min(pause * 2, .seconds(10))
            }
            announced = .zero
            result.attempts += 1
            do throws(ProxyClient.Failure) {
                let answer = try client.get(place, keeping: keeping)
                result.status = answer.status
                result.bytes += answer.bodyBytes
                if !mayPass(answer.status) || attempt == plan.retries { return answer }
                let now = WallTime(secondsSinceEpoch: Int64(time(nil)))
                announced = answer.fields.first(.retryAfter).flatMap { parseRetryAfter($0, now: now) } ?? .zero
                // Others of the list need not wait for this one.
                if announced > Self.announcedPauseMax { return answer }
            } catch {
                result.status = nil
                result.outcome = .failed(reason: error.text)
            }
        }
        return nil
    }

    /// Statuses that may change soon (RFC 9110 §15.5.9, §15.6; RFC 6585 §4; RFC 8470 §5.2). 501 and 505 will not.
    private func mayPass(_ status: UInt16) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504: true
        default: false
        }
    }

    /// The target of a redirect (RFC 9110 §15.4). Returns nil if the answer is not a redirect that can be followed.
    private func redirect(_ answer: ProxyClient.Answer, from place: TargetURI) -> TargetURI? {
        guard [301, 302, 303, 307, 308].contains(answer.status), let location = answer.fields.first(.location)
        else { return nil }
        return webReference(location, from: place)
    }

    private func references(
        in answer: ProxyClient.Answer, _ kind: PageReference.Kind, at place: TargetURI
    ) -> [PageReference] {
        let type = answer.fields.first(.contentType).map { lowercased(trimOWS($0.prefix { $0 != UInt8(ascii: ";") })) }
        switch (kind, type) {
        case (.page, "text/html"), (.page, "application/xhtml+xml"):
            return pageReferences(decoded(answer), at: place)
        case (.page, "text/css"), (.stylesheet, "text/css"), (.stylesheet, nil):
            return stylesheetReferences(decoded(answer), at: place)
        default: return []
        }
    }

    /// The body without gzip, as far as it can be decompressed. Other codings are not requested.
    private func decoded(_ answer: ProxyClient.Answer) -> [UInt8] {
        guard let coding = answer.fields.first(.contentEncoding).map({ lowercased($0) }) else { return answer.body }
        guard coding == "gzip" || coding == "x-gzip" else { return coding == "identity" ? answer.body : [] }
        var inflator = Inflator(outputMax: Self.scannedBytesMax)
        var text: [UInt8] = []
        do throws(InflateError) {
            try inflator.decompress(answer.body, into: &text)
        } catch {
            return text  // scan the text before the error
        }
        return text
    }
}

private func sleep(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var left = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var rest = timespec()
    while unsafe nanosleep(&left, &rest) != 0 && errno == EINTR { left = rest }
}
