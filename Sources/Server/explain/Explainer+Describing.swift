import Accounts
import Caching
import EventLoop
import Message
import Storage
import Transaction

/// Notes the request, the policies and the stored responses.
extension Explainer {
    mutating func describeRequest() {
        note("request", "method", String(decoding: request.methodText, as: UTF8.self))
        note("request", "key", Diagnostics.masked(request.keyBytes))
        note("request", "client", request.client.map { "\($0)" } ?? "a Unix socket")
        switch (user, snapshot.mayHaveIdentity) {
        case (let user?, true): note("request", "user", user)
        case (let user?, false):
            note("request", "user", "\(user), which has no effect: no authentication is configured")
        case (nil, true) where !snapshot.requiresIdentity:
            note("request", "user", "none: rules may ask for credentials (--as NAME assumes a user)")
        case (nil, true):
            note("request", "user", "none: the proxy would ask for credentials (--as NAME assumes a user)")
        case (nil, false): break
        }
    }

    /// Notes the key of a request whose address is signed, or stands for another.
    mutating func describeFolding() {
        let uptime = Duration.nanoseconds(Int64(clamping: MonotonicTime.read().nanoseconds))
        guard request.fold(by: snapshot, proxy.shared, now: uptime, wallTime: now) else { return }
        note("request", "folded key", Diagnostics.masked(request.keyBytes))
        let isProven = request.handling.folding == .proven
        note(
            "request", "access",
            isProven
                ? "this client has proven its access to the address"
                : "the origin is asked whether this client may have the address")
    }

    mutating func describeStored(_ variants: [StoredResponse]) {
        describePolicy()
        guard !variants.isEmpty else { return note("stored", "responses", "none") }
        for (index, variant) in variants.enumerated() {
            let section = variants.count == 1 ? "stored" : "stored, variant \(index + 1) of \(variants.count)"
            describe(variant, in: section)
        }
    }

    /// Notes how the rules say that the request is handled.
    private mutating func describePolicy() {
        let configuration = snapshot.configuration
        note("policy", "collapse", configuration.cache.collapse ? "yes" : "no")
        note("policy", "heuristic_lifetime_max", "\(snapshot.cachePolicy.heuristicLifetimeMax.count) s")
        let handling = request.handling
        note("policy", "rule", handling.rule.map { "\($0): \(snapshot.cacheRules.rules[$0 - 1].text)" } ?? "none")
        if handling.isDisputed {
            note(
                "policy", "path", "may be another one to the origin: the strictest of the rules for all of them counts")
        }
        note("policy", "zone", request.zone.name)
        note("policy", "object_size_max", "\(request.objectSizeMax) bytes")
        let words = handling.use.words.map(\.rawValue)
        note("policy", "cache policies", words.isEmpty ? "revalidate-when-stale" : words.joined(separator: ", "))
        note("policy", "storage policy", handling.storage.rawValue)
        if let ttl = handling.ttl { note("policy", "ttl", "\(ttl.count) s, in place of the lifetime from the origin") }
        if let bound = handling.ttlMax { note("policy", "ttl_max", "\(bound.count) s") }
        if let ttl = handling.ttlDefault {
            note("policy", "ttl_default", "\(ttl.count) s, if the origin gives no lifetime")
        }
        if handling.isImmutable { note("policy", "immutable", "yes: successes stay fresh as long as they are stored") }
        if !handling.respectsCacheControl { note("policy", "respect_cache_control", "no") }
        if let rule = request.releaseRule {
            note("policy", "release", rule.kind.rawValue + (rule.package.map { " of \($0)" } ?? ""))
        }
        if handling.authorization != .standard { note("policy", "authorization", handling.authorization.rawValue) }
        note("policy", "ranges", handling.ranges.rawValue)
        if handling.compression != .no { note("policy", "compress", handling.compression.rawValue) }
    }

    /// Notes what becomes of the selected stored response, if it is a redirect and a rule follows redirects.
    mutating func describeRedirect() {
        guard let selected, RedirectStep.concerns(status: selected.cached.status),
            let trail = TargetURI(request.uri).map({ RedirectTrail(request.method, $0) }),
            let step = request.step(selected.cached.status, selected.fields, .none, on: trail, by: snapshot)
        else { return }
        let text =
            switch step {
            case .follow(let following):
                "followed to \(Diagnostics.masked(following.target.normalised)), which is decided by itself"
            case .passOn(let reason): "passed on, because \(reason.text)"
            case .refuse(let refusal): "refused: \(refusal.name)"
            }
        note("answer", "redirect", text)
    }

    private mutating func describe(_ variant: StoredResponse, in section: String) {
        let cached = variant.cached
        note(section, "status", "\(cached.status)")
        let state =
            switch variant.body.state {
            case .growing, .moved: ", still arriving"
            case .failed: ", broken off"
            case .partial: " from the start, \(variant.body.extents.count) parts of \(variant.body.expectedLength ?? 0)"
            case .complete: ""
            }
        note(section, "body", "\(variant.body.length) bytes\(state)")
        note(section, "stored", httpDate(cached.responseTime))
        if let eTag = variant.fields.first(.eTag) { note(section, "ETag", String(decoding: eTag, as: UTF8.self)) }
        if cached.lastModified != nil {
            note(section, "Last-Modified", String(decoding: cached.lastModifiedBytes, as: UTF8.self))
        }
        if !cached.hasValidator { note(section, "validators", "none") }
        if let control = variant.fields.joined(.cacheControl) {
            note(section, "Cache-Control", String(decoding: control, as: UTF8.self))
        }
        describeVary(variant, in: section)
    }

    private mutating func describeVary(_ variant: StoredResponse, in section: String) {
        guard variant.secondaryKey != nil else { return }
        if let vary = variant.fields.joined(.vary) { note(section, "Vary", String(decoding: vary, as: UTF8.self)) }
        if case .names(let names) = variant.cached.vary {
            for name in names {
                let lines = request.fields.lines.filter {
                    equalsIgnoringCase(request.fields.name(of: $0), name.spelling)
                }
                let values = lines.map { String(decoding: request.fields.value(of: $0), as: UTF8.self) }
                let value = values.isEmpty ? "absent" : values.joined(separator: ", ")
                note(section, "asked with \(String(decoding: name.spelling, as: UTF8.self))", value)
            }
        }
        note(section, "matches the request", suits(variant) ? "yes" : "no")
    }

    mutating func describeFreshness(_ stored: StoredResponse, _ use: CacheUse) {
        let judged = stored.cached.judged(by: request.handling(of: stored, by: snapshot))
        for line in explainFreshness(judged, for: request.cache, use: use, now: now) {
            note("freshness", line.name, line.value)
        }
    }
}

private func httpDate(_ time: WallTime) -> String {
    var bytes: [UInt8] = []
    appendHTTPDate(time, to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
}
