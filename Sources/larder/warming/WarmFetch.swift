import Compression
import EventLoop
import Glibc
import Message
import Upstream

/// Fetches URLs, follows redirects, and repeats failed attempts.
struct WarmFetcher: Sendable {
    static let redirectsMax = 10
    /// How long an origin may ask to wait before it is asked again (RFC 9110 §10.2.3). If it is longer, the URL counts as failed.
    static let announcedPauseMax: Duration = .seconds(60)
    /// How many bytes of a page or stylesheet are scanned, before and after decompressing.
    static let scannedBytesMax = 8 << 20

    let client: Client
    let plan: WarmPlan

    private struct Answer {
        var status: UInt16
        var fields: Fields
        /// The first bytes of the body, as many as are scanned.
        var body: [UInt8]
        /// The length of the whole body.
        var bodyBytes: UInt64
    }

    /// Returns the result, and the references if the response is a page or stylesheet.
    func fetch(_ target: WarmTarget) async -> (WarmResult, [PageReference]) {
        let start = ContinuousClock.now
        var (result, references) = await follow(target)
        result.milliseconds = Int64((ContinuousClock.now - start) / .milliseconds(1))
        return (result, references)
    }

    private func follow(_ target: WarmTarget) async -> (WarmResult, [PageReference]) {
        var result = WarmResult(target, .failed(reason: "this is not an absolute URL"))
        guard var place = target.target else { return (result, []) }
        for _ in 0...Self.redirectsMax {
            let keeping = target.kind == .other ? 0 : Self.scannedBytesMax
            guard let answer = await ask(place, keeping: keeping, &result) else { return (result, []) }
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
    private func ask(_ place: TargetURI, keeping: Int, _ result: inout WarmResult) async -> Answer? {
        var pause = plan.pause
        // What the origin asks for with `Retry-After`.
        var announced = Duration.zero
        for attempt in 0...plan.retries {
            if attempt > 0 {
                await sleep(max(pause, announced))
                pause = min(pause * 2, .seconds(10))
            }
            announced = .zero
            result.attempts += 1
            do throws(ClientError) {
                let answer = try await get(place, keeping: keeping)
                result.status = answer.status
                result.bytes += answer.bodyBytes
                if !mayPass(answer.status) || attempt == plan.retries { return answer }
                let now = WallTime(secondsSinceEpoch: Int64(time(nil)))
                announced = answer.fields.first(.retryAfter).flatMap { parseRetryAfter($0, now: now) } ?? .zero
                // Others of the list need not wait for this one.
                if announced > Self.announcedPauseMax { return answer }
            } catch {
                result.status = nil
                result.outcome = .failed(reason: textOfProxyError(error))
            }
        }
        return nil
    }

    private func get(_ place: TargetURI, keeping: Int) async throws(ClientError) -> Answer {
        let response = try await client.send(Request(.get, String(decoding: place.normalised, as: UTF8.self)))
        let (body, length) = try await response.body.collect(first: keeping)
        return Answer(status: response.head.status, fields: response.head.fields, body: body, bodyBytes: length)
    }

    /// Statuses that may change soon (RFC 9110 §15.5.9, §15.6; RFC 6585 §4; RFC 8470 §5.2). 501 and 505 will not. One above 599 counts as 500 (RFC 9110 §15).
    private func mayPass(_ status: UInt16) -> Bool {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504, 600...: true
        default: false
        }
    }

    /// The target of a redirect (RFC 9110 §15.4). Returns nil if the answer is not a redirect that can be followed.
    private func redirect(_ answer: Answer, from place: TargetURI) -> TargetURI? {
        guard [301, 302, 303, 307, 308].contains(answer.status), let location = answer.fields.first(.location)
        else { return nil }
        return webReference(location, from: place)
    }

    private func references(
        in answer: Answer, _ kind: PageReference.Kind, at place: TargetURI
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
    private func decoded(_ answer: Answer) -> [UInt8] {
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

func sleep(_ duration: Duration) async {
    // A command is not cancelled, so this lasts as long as it should.
    do { try await Task.sleep(for: duration) } catch {}
}
