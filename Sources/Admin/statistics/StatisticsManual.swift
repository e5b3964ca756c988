import Access
import Accounts
import Cookies
import Framing
import Server
import Transaction

/// `docs/statistics.md`: every figure, and the closed sets that are counted, rendered from their declarations.
package func renderStatisticsManual() -> String {
    var text = manualHead
    for section in StatisticsSection.allCases where !section.isTally {
        let object = section == .process ? "" : "`\(section.rawValue)`"
        text += heading(3, section.title, object)
        switch section {
        case .fleet: text += table(of: fleetFigures, prefix: "fleet_", by: "node")
        case .owners: text += table(of: ownerFigures, prefix: "fleet_peer_", by: "node")
        default: text += table(of: section.figures)
        }
    }
    text +=
        heading(3, "Zones", "each of `zones`, beside its `name`")
        + table(of: memoryFigures, prefix: "zone_memory_", by: "zone")
    text +=
        heading(3, "Disk tier", "`disk` in those of `zones` that have one")
        + table(of: diskFigures, prefix: "disk_", by: "zone")
    text +=
        heading(3, "Nodes of the fleet", "each of `fleet_nodes`: those that this node knows of, itself included")
        + table(
            ["member", "meaning"],
            [
                ["`name`", "The name of the node."],
                ["`version`", "Its release."],
                ["`seen_at`", "When it said so, by its own clock."],
                [
                    "`position`",
                    "Up to which entry of the stream of purges it has applied them. `0-0` before the first one.",
                ],
            ])
    text += fleetOfNodes
    text += heading(3, "Workers", "each of `workers`, beside its `number`")
    text += table(of: workerFigures, prefix: "worker_", by: "worker")
    text +=
        heading(
            3, "Package ecosystems",
            "each of `ecosystems`, beside its `name`: the [recipes](recipes.md) that had requests")
        + table(of: ecosystemFigures, prefix: "recipe_", by: "recipe")
    text +=
        heading(
            3, "Certificates that clients did not accept",
            "each of `certificate_refusals`, at most 100, the latest first")
        + table(
            ["member", "meaning"],
            [
                ["`client`", "The user, otherwise the address. Absent for a client of a Unix socket."],
                ["`host`", "The host whose tunnel was opened."],
                ["`signal`", "What the client did: the alert that it sent, or that it closed the connection."],
                ["`count`", "How often, since the first time."],
                ["`last_at`", "When it did so last. After a day it is forgotten."],
            ])
    text +=
        heading(
            3, "Certificates that origins asked for",
            "each of `certificate_requests`, at most 100, the latest first")
        + table(
            ["member", "meaning"],
            [
                ["`host`", "The origin that asked for a certificate of the client. Larder has none."],
                ["`required`", "Whether it ended a connection because it got none. Others go on."],
                ["`count`", "How often, since the first time."],
                ["`last_at`", "When it did so last. After a day it is forgotten."],
            ])
    text +=
        heading(3, "Credentials", "each of `credentials`, in the order of the configuration")
        + table(
            ["member", "meaning"],
            [
                ["`name`", "The name of the credential."],
                ["`schemes`", "The schemes that it allows."],
                [
                    "`refusals`",
                    "The origins and next proxies that refuse it: `origin`, its URL, `count` in a row, `since` the first of them, and `given_up` if it is not sent there any more.",
                ],
            ])
    text +=
        heading(3, "Cookie jars", "each of `cookie_jars`, in the order of the configuration")
        + table(
            ["member", "meaning"],
            [
                ["`name`", "The name of the jar."],
                ["`cookies`", "The cookies that it has."],
                ["`sent`", "Requests to origins that carried cookies of the jar."],
                ["`set`", "Cookies of origins that it took: new ones, and those that replaced or removed one."],
                [
                    "`rejected`",
                    "Cookies of origins that it did not take, by reason: "
                        + CookieRejection.allCases.map { "`\($0.rawValue)`: \($0.text)" }.joined(separator: "; ") + ".",
                ],
            ])
    text +=
        heading(
            3, "Next proxies",
            "each of `next_proxies`, in the order of `routes`, then those of PAC files that do not work")
        + table(
            ["member", "meaning"],
            [
                ["`url`", "The proxy, without its user."],
                ["`works`", "Whether the last request that needed it found it working."],
                ["`failure`", "Why it does not work. Absent if it does."],
                ["`failing_since`", "When it failed first, without a success since. Absent if it works."],
            ])
    text +=
        heading(3, "PAC files", "each of `pac_files`, beside its `path`: the file, or the URL without its query")
        + table(of: pacFileFigures, prefix: "pac_file_", by: "path") + "\n"
        + table(
            ["member", "meaning"],
            [
                [
                    "`process`",
                    "The number of the process. Absent if it has ended: the next question starts another one.",
                ],
                ["`failure`", "Why the last question had no answer. Absent if it had one."],
                [
                    "`fetched_at`",
                    "When the server of a URL sent the script that is in use, or confirmed it. Absent before, and for files.",
                ],
                ["`fetch_failure`", "Why the last attempt to fetch it failed. Absent if it did not."],
                ["`fetch_failing_since`", "The first failure without a success since."],
            ])
    text +=
        heading(3, "Jobs that learn", "each of `learning`: the jobs whose requests are noted ([learn.md](learn.md))")
        + table(
            ["member", "meaning"],
            [
                ["`job`", "The name of the job."],
                ["`scope`", "Whose requests belong to it."],
                ["`allows`", "Whether what the access rules deny to them is let through."],
                ["`ends`", "When it ends by itself. Absent if it does not."],
            ])
    text +=
        heading(
            3, "Limits of the rate",
            "each of `bandwidth_limits`: the limits of the section `bandwidth` in use, the one with most bytes at the front. In a fleet each node counts them for itself"
        )
        + table(
            ["member", "meaning"],
            [
                ["`limit`", "`total`, `client ADDRESS`, `class NAME`, or `origins[N]` for a rule."],
                ["`rate`", "What is allowed, in bytes per second."],
                ["`average`", "What came, in bytes per second, over the last five seconds."],
                ["`flows`", "Responses and tunnels under way."],
            ])
    text +=
        heading(
            3, "Rules of limits",
            "each of `limit_rules`, beside its `name`: the rules of `limits.rules` with buckets of their own ([limits.md](limits.md))"
        )
        + table(of: limitRuleFigures, prefix: "limit_", by: "rule")
    text +=
        heading(
            3, "Limits of clients, users and groups",
            "each of `limits`: the buckets of `limits.rules` that are in use, those with most refusals at the front")
        + table(
            ["member", "meaning"],
            [
                ["`rule`", "The name of the rule."],
                ["`subject`", "`client ADDRESS`, `user NAME`, `group NAME`, or `all`."],
                ["`under_way`", "Requests and tunnels under way. Counted where the rule has `concurrent`."],
                ["`connections`", "Connections that are open. Counted where the rule has `connections`."],
                ["`refused`", "Requests and connections refused."],
                ["`bytes`", "Bytes of bodies and of tunnels that have ended, towards clients."],
                ["`spent`", "Bytes used of a budget, in its present hour, day or week."],
            ])
    text +=
        heading(
            3, "Origins that do not accept connections",
            "each of `origins_down`, the one that failed first at the front")
        + table(
            ["member", "meaning"],
            [
                ["`origin`", "The host and the port."],
                ["`since`", "When the first of the attempts failed."],
                ["`retry_after`", "The seconds after which the next request tries it."],
            ])
    text +=
        heading(
            3, "Names that name servers do not answer",
            "each of `names_unanswered`, at most 100, the one that was so first at the front")
        + table(
            ["member", "meaning"],
            [
                ["`name`", "The name. Its look-ups fail at once."],
                ["`servers`", "The name servers that have been silent about it."],
                ["`since`", "When a look-up waited for them in vain first, without an answer since."],
                ["`retry_after`", "The seconds after which the next look-up tries them."],
            ])
    text +=
        heading(
            3, "Origins that are not verified",
            "each of `unverified_origins`: the hosts for which a rule of `origins` says `verify: no`")
        + table(
            ["member", "meaning"],
            [
                ["`host`", "As the rule names it."],
                ["`rule`", "The position of the rule, from 1."],
                ["`pinned`", "Whether the origin must have a pinned key, and so proves who it is after all."],
            ])
    return text + outcomes + refusals + denials + violations + closes
}

private let fleetOfNodes =
    heading(3, "All nodes of a fleet")
        + """
        `GET /stats?fleet`, `GET /metrics?fleet`, `larder stats --fleet` and the page `/fleet` show the figures of all nodes, as the node that is asked knows them
        ([fleet.md](fleet.md#9-seeing-it)). Every node publishes its figures every 5 seconds. Without a fleet, the answer is 404.


        """
    + table(
        ["member", "meaning"],
        [
            ["`node`, `server`", "The node that was asked, and the Redis without its password."],
            ["`connected`", "Whether the node that was asked has a connection to the Redis."],
            ["`away_since`", "Since when it has none. Absent if it has one."],
            ["`failure`", "Why there is no connection, or why purges cannot be followed. Absent if all is well."],
            [
                "`unreadable`",
                "The nodes in the register whose figures this node cannot read: they are of an earlier release, have another secret, or somebody made them up.",
            ],
            ["`nodes`", "The nodes, by name."],
            ["`sum`", "The sums over all nodes but those that are `silent`."],
        ])
    + "\nEach of `nodes` has:\n\n"
    + table(
        ["member", "meaning"],
        [
            ["`name`, `release`, `started_at`", "The node, its release, and when it started, by its own clock."],
            ["`state`", FleetMember.State.allCases.map { "`\($0.rawValue)`: \($0.meaning)" }.joined(separator: " ")],
            ["`age_seconds`", "The seconds since its figures came here. 0 for the node that was asked."],
            ["`asked`", "Whether it is the node that was asked."],
            ["`hit_ratio`", "`requests` without `from_origin`, divided by `requests`. Null before the first request."],
        ])
    + "\nand these figures, if the node's release knows them. Those of other nodes are up to 5 seconds old:\n\n"
    + table(
        ["member", "`/metrics?fleet`", "meaning"],
        NodeRow.all.map { row in
            ["`\(row.name)`", "`\(row.metric.fullName){node=\"…\"}` (\(row.metric.kind.rawValue))", row.help]
        })
        + """

        `/metrics?fleet` has `larder_node_up` and `larder_node_age_seconds` for each node beside them.

        **Prometheus.** Scrape `/metrics` of every node, as ever: the families `larder_fleet_…` have the label `node`, and `larder_fleet_info{node="…"}` gives the name to all
        others (`larder_requests_total * on (instance) group_left (node) larder_fleet_info`). `/metrics` has nothing of other nodes, because a Prometheus that scrapes all of them
        would count each node once for each node. For a Prometheus that reaches one node alone, scrape `/metrics?fleet` there (`metrics_path: /metrics`, `params: { fleet: [ "" ] }`).
        Its families are called `larder_node_…`, so a sum over one kind never has the other in it. If more than one node is scraped in this way, take
        `max by (node) (…)` before a sum.

        """

private func heading(_ level: Int, _ title: String, _ object: String = "") -> String {
    "\n\(String(repeating: "#", count: level)) \(title)\n\n" + (object.isEmpty ? "" : "In `/stats`: \(object).\n\n")
}

private func table(_ columns: [String], _ rows: [[String]]) -> String {
    func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |\n" }
    return line(columns) + "|" + String(repeating: "---|", count: columns.count) + "\n" + rows.map(line).joined()
}

private func table<Subject>(of figures: [Figure<Subject>], prefix: String = "", by label: String? = nil) -> String {
    table(
        ["`/stats`", "`/metrics`", "meaning"],
        figures.map { figure in
            let metric = figure.metric.map { $0.prefixed(prefix).text(by: label) } ?? ""
            return ["`\(figure.name)`", metric, figure.help]
        })
}

extension Metric {
    /// As it is written, with its kind: `larder_tunnels` (gauge).
    fileprivate func text(by subject: String?) -> String {
        let label =
            if let family { "{\(family.label)=\"\(labelValue ?? "")\"}" } else if let name = textLabel ?? subject {
                "{\(name)=\"…\"}"
            } else { "" }
        return "`\(fullName)\(label)` (\(kind.rawValue))"
    }
}

// MARK: closed sets

private let outcomes =
    heading(2, "Outcomes")
        + """
        Every request has one: `outcome` in the access log, the members of `requests` in `/stats`, and
        `larder_requests_total{outcome="…"}` in `/metrics`.


        """
    + table(
        ["outcome", "meaning"],
        RequestOutcome.allCases.map { outcome in
            ["`\(outcome.name)`", "\(outcome.meaning)" + (outcome.counters.isEmpty ? " Only in the access log." : "")]
        })

private let refusals =
    heading(2, "Refusals and errors")
        + """
        Larder answers with an error of its own. The name is `reason` in the access log and `detail` of `Cache-Status` in the response, whose
        `Proxy-Status` has the error type of RFC 9209. Refusals of clients and of this proxy are counted by name: `refusals` in `/stats`,
        `larder_refusals_total{reason="…"}` in `/metrics`. Errors of origins are counted by error type: `errors`, and
        `larder_errors_total{type="…"}`. What has not happened yet is left out. [troubleshooting.md](troubleshooting.md) says what to do.


        """
    + table(
        ["name", "status", "`Proxy-Status` error", "counted as", "meaning"],
        Refusal.allCases.map { refusal in
            [
                "`\(refusal.name)`", "\(refusal.status)", "`\(refusal.proxyStatusError)`",
                refusal.isOfOrigin ? "error" : "refusal", "\(refusal.explanation)",
            ]
        })

private let denials =
    heading(2, "Denials")
        + """
        What the access rules deny is counted once more, by a name that says more: `denials` in `/stats`,
        `larder_denials_total{reason="…"}` in `/metrics`. It is `denial` in the access log and `reason` of `Larder-Deny` in the response,
        whose `hint` tells the client what it can do. [access.md](access.md#9-what-a-client-is-told) says more.


        """
    + table(
        ["name", "meaning", "`hint`"],
        DenialReason.allCases.map { ["`\($0.rawValue)`", "\($0.meaning)", "\($0.hint)"] })

private let violations =
    heading(2, "Violations of HTTP/1.1")
        + """
        A message that breaks a rule is refused. A client gets the status below, with the error type `http_request_error`; for a
        response of an origin, the client gets 502 with the error type in the table. The name is `reason` in the access log, and violations are
        counted by name with the refusals, whoever sent the message.


        """
    + table(
        ["name", "status", "`Proxy-Status` error of a response", "meaning"],
        FramingError.allCases.map { violation in
            [
                "`\(violation.reason)`", "\(violation.requestStatus)", "`\(violation.proxyStatusError)`",
                "\(violation.explanation)",
            ]
        })

private let closes =
    heading(2, "Why connections of clients closed")
        + """
        Every connection of a client has one reason: `closes` in `/stats`, `larder_client_connections_closed_total{reason="…"}` in
        `/metrics`, and `close` in the log line of a request whose client did not get its whole answer. What has not happened yet is left out.


        """
    + table(["reason", "meaning"], CloseReason.allCases.map { ["`\($0.name)`", "\($0.explanation)"] })
    + heading(2, "Why tunnels broke off")
        + """
        `close` in the log line of a tunnel of which one side was reset. Both sides are reset, without a name here, when Larder itself ends a
        tunnel that goes on: because a budget is spent (`reason`), somebody cancels it, or Larder stops.


        """
    + table(["reason", "meaning"], TunnelBreak.allCases.map { ["`\($0.rawValue)`", "\($0.explanation)"] })

private let manualHead = """
    # Statistics

    <!-- Rendered from Sources/Admin/statistics by `LARDER_RENDER=1 swift test --filter Rendering`; change it there. -->

    `GET /stats` has all figures as JSON, and `GET /metrics` has them for Prometheus, except what Prometheus computes by itself. `larder stats`
    and the dashboard show a selection. [admin.md](admin.md) says who can use them.

    Counters count from the start of the process and never fall; gauges say what is now. Sizes are in bytes. Figures are added up while
    requests are being handled, so two figures of one answer can differ by a few requests. The number of connections to origins and the figures
    about names are up to one second old.

    ## Figures

    """
