# The client: what a service can be asked, as functions of one object.

#' A client of a Dither service.
#'
#' Its methods have the names and arguments of the SDK for Python: `desk$mean("commute", by = "region")`. A
#' refusal is a condition of the class `dither_problem`, and of `dither_` and its code, as `dither_no_gain`.
#'
#' @param url Address of the service, without `/v1`.
#' @param token Bearer token.
#' @param tries How often a request is sent at most, where the service is busy or does not answer. What costs
#'   anyone anything has an Idempotency-Key, so it is paid once.
#' @return An object whose elements are functions; what answers anything answers a tibble.
dither <- function(url, token, tries = 4) {
  stopifnot(is.character(url), length(url) == 1, is.character(token), length(token) == 1)
  call <- function(method, path, query = list(), body = NULL, key = NULL, repeatable = TRUE) {
    exchange(url, token, tries, method, path, query, body, key, repeatable)
  }
  pages <- function(path, query = list(), page_size = 100) {
    items <- list()
    query$limit <- page_size
    repeat {
      page <- call("GET", path, query)
      items <- c(items, page$items)
      if (is.null(page$next_cursor)) return(items)
      query$cursor <- page$next_cursor
    }
  }
  service <- list(
    call = call,
    pages = pages,
    list = function(path, ...) records(pages(path, ...)),
    one = function(...) records(list(call(...))),
    end = function(path) invisible(call("DELETE", path))
  )
  client <- c(analyst(service), people(service), admin(service), sessions(service))
  structure(client, class = "dither_client", url = url)
}

at_study <- function(study, ...) paste0("/v1/studies/", quoted(study), ...)
at_token <- function(token, ...) paste0("/v1/admin/tokens/", quoted(token), ...)

# What an analyst does: questions, answers, and what becomes of them.
analyst <- function(service) {
  read <- function(statistic, as = answer) {
    force(statistic)
    function(study, ...) as(service$call("GET", at_study(study, "/statistics/", statistic), parameters(...)))
  }
  pair <- function(statistic, join) {
    function(study, first, second, ...) {
      asked <- c(join(first, second), parameters(...))
      answer(service$call("GET", at_study(study, "/statistics/", statistic), asked))
    }
  }
  measures <- function(first, second) list(measures = paste0(first, ",", second))
  statistics <- c("mean", "sum", "variance", "sd", "difference", "histogram", "shares", "distribution",
                  "quantile", "median", "count", "describe")
  client <- stats::setNames(lapply(statistics, read), statistics)
  client$covariance <- pair("covariance", measures)
  client$correlation <- pair("correlation", measures)
  client$table <- pair("table", measures)
  client$regression <- pair("regression", function(of, on) list(of = of, on = on))
  for (statistic in c("change", "trend")) client[[statistic]] <- read(statistic, function(said) records(list(said)))

  client$plan <- function(study, statistic = "mean", ...) {
    said <- service$call("GET", at_study(study, "/plan"), c(list(statistic = statistic), parameters(...)))
    structure(records(said$estimators), said = said)
  }
  client$plan_several <- function(study, questions) {
    asked <- lapply(questions, function(question) do.call(parameters, as.list(question)))
    said <- service$call("POST", at_study(study, "/plan"), body = list(questions = asked))
    structure(records(said$questions), said = said)
  }
  client$release <- function(study, statistic = "mean", allow_worse = FALSE, fresh = FALSE, until = NULL,
                             idempotency_key = random_key(), ...) {
    wish <- c(list(statistic = statistic), parameters(...))
    if (!is.null(until)) wish$until <- list(half_width = number(until))
    if (allow_worse) wish$allow_worse <- TRUE
    if (fresh) wish$fresh <- TRUE
    answer(service$call("POST", at_study(study, "/releases"), body = wish, key = idempotency_key))
  }
  client$find_release <- function(release, level = NULL) {
    answer(service$call("GET", paste0("/v1/releases/", quoted(release)), parameters(level = level)))
  }
  client$releases <- function(study, page_size = 100) {
    lapply(service$pages(at_study(study, "/releases"), page_size = page_size), answer)
  }
  client$studies <- function(series = NULL, page_size = 100) {
    service$list("/v1/studies", given(series = series), page_size)
  }
  client$study <- function(study) service$one("GET", at_study(study))

  client$publish <- function(study, releases, title, slug = NULL, replace = FALSE, expires_at = NULL,
                             frames = NULL) {
    wish <- given(releases = as_list(releases), title = title, slug = if (!replace) slug,
                  expires_at = moment(expires_at), frames = as_list(frames))
    path <- at_study(study, "/publications", if (replace) paste0("/", quoted(slug)))
    service$one(if (replace) "PUT" else "POST", path, body = wish, repeatable = replace)
  }
  client$publications <- function(study, page_size = 100) {
    service$list(at_study(study, "/publications"), page_size = page_size)
  }
  client$withdraw_publication <- function(study, publication) {
    service$end(at_study(study, "/publications/", quoted(publication)))
  }

  client$schedules <- function(study, page_size = 100) {
    service$list(at_study(study, "/schedules"), page_size = page_size)
  }
  client$find_schedule <- function(study, schedule) {
    service$one("GET", at_study(study, "/schedules/", quoted(schedule)))
  }
  client
}

# What people's values do: they come, change and go.
people <- function(service) {
  client <- list()
  client$contribute <- function(study, subject, value, epsilon = NULL, trust, attributes = NULL) {
    row <- contribution(list(subject = subject, value = value, epsilon = epsilon, trust = trust), attributes)
    service$one("POST", at_study(study, "/contributions"), body = row)
  }
  client$replace <- function(study, subject, value, epsilon = NULL, trust, attributes = NULL) {
    row <- contribution(list(value = value, epsilon = epsilon, trust = trust), attributes)
    service$one("PUT", at_study(study, "/contributions/", quoted(text(subject))), body = row)
  }
  client$contribute_many <- function(study, records, epsilon = NULL, trust = NULL, chunk = 5000) {
    if (!is.data.frame(records)) refuse("invalid_request", "records must be a data frame")
    measures <- names(service$call("GET", at_study(study))$measures)
    measures <- intersect(measures, setdiff(names(records), "value"))
    labels <- setdiff(names(records), c("subject", "value", "epsilon", "trust", measures))
    rows <- lapply(seq_len(nrow(records)), function(place) {
      row <- lapply(records, function(column) column[[place]])
      if (length(measures)) row$value <- row[measures]
      if (is.null(row$epsilon)) row["epsilon"] <- list(epsilon)
      if (is.null(row$trust)) row["trust"] <- list(trust)
      tryCatch(
        contribution(row[setdiff(names(row), c(labels, measures))], row[labels]),
        dither_problem = function(fault) refuse(fault$code, paste0("row ", place, ": ", conditionMessage(fault)))
      )
    })
    results <- list()
    for (part in split(rows, (seq_along(rows) - 1) %/% chunk)) {
      before <- length(results)
      said <- service$call("POST", at_study(study, "/contributions/batch"), body = unname(part))
      results <- c(results, lapply(said$results, function(one) {
        if (!is.null(one$row)) one$row <- one$row + before
        one
      }))
    }
    records(results)
  }
  client$withdraw <- function(study, subject) {
    service$end(at_study(study, "/contributions/", quoted(text(subject))))
  }
  client$budget <- function(subject) {
    service$one("GET", paste0("/v1/subjects/", quoted(text(subject)), "/budget"))
  }
  client
}

# What an admin does: studies, links, tokens, budgets, and what the service does by itself.
admin <- function(service) {
  client <- list()
  client$create_study <- function(slug, ..., epsilon_min = NULL, epsilon_max = NULL, epsilons = NULL,
                                  attributes = NULL, choices = NULL, measures = NULL, trust = NULL) {
    limits <- given(min = number(epsilon_min), max = number(epsilon_max))
    lists <- given(choices = as_list(choices), trust = as_list(trust), epsilons = as_list(number(epsilons)))
    wish <- c(list(slug = slug), lapply(list(...), number), lists)
    if (!is.null(attributes)) wish$attributes <- lapply(attributes, as_list)
    if (!is.null(measures)) {
      wish$measures <- lapply(measures, function(one) {
        one <- as.list(one)
        if (!is.null(one$choices)) one$choices <- as_list(one$choices)
        lapply(one, number)
      })
    }
    if (length(limits)) wish$epsilon <- limits
    service$one("POST", "/v1/studies", body = wish, repeatable = FALSE)
  }
  client$edit_study <- function(study, reason, title = NULL, description = NULL, texts = NULL) {
    wish <- given(title = title, description = description, texts = texts, reason = reason)
    service$one("PATCH", at_study(study), body = wish)
  }
  client$close_study <- function(study) service$one("POST", at_study(study, "/close"))
  client$retire_study <- function(study) service$one("POST", at_study(study, "/retire"))
  client$narrow_study <- function(study, lower, upper) {
    service$one("POST", at_study(study, "/reporting-range"), body = list(lower = lower, upper = upper))
  }
  client$archive_study <- function(study, reason) {
    service$one("POST", at_study(study, "/archive"), body = list(reason = reason))
  }

  client$invite <- function(study, kind, count = NULL, subjects = NULL, limit = NULL, name = NULL,
                            expires_at = NULL) {
    wish <- given(kind = kind, count = number(count), subjects = as_list(subjects), limit = number(limit),
                  name = name, expires_at = moment(expires_at))
    service$one("POST", at_study(study, "/invitations"), body = wish, repeatable = FALSE)
  }
  client$invitations <- function(study, page_size = 100) {
    service$list(at_study(study, "/invitations"), page_size = page_size)
  }
  client$invitation <- function(study, invitation) {
    service$one("GET", at_study(study, "/invitations/", quoted(invitation)))
  }
  client$revoke_invitation <- function(study, invitation) {
    service$end(at_study(study, "/invitations/", quoted(invitation)))
  }

  client$create_token <- function(name, role, studies = NULL, subject = NULL, expires_at = NULL) {
    roles <- if (length(role) > 1) list(roles = as_list(role)) else list(role = role)
    wish <- c(roles, given(name = name, studies = as_list(studies), subject = subject,
                           expires_at = moment(expires_at)))
    service$one("POST", "/v1/admin/tokens", body = wish, repeatable = FALSE)
  }
  client$tokens <- function(page_size = 100) service$list("/v1/admin/tokens", page_size = page_size)
  client$find_token <- function(token) service$one("GET", at_token(token))
  client$revoke_token <- function(token) service$end(at_token(token))
  client$rotate_token <- function(token, grace_seconds = 0) {
    wish <- list(grace_seconds = number(grace_seconds))
    service$one("POST", at_token(token, "/rotate"), body = wish, repeatable = FALSE)
  }
  client$set_quota <- function(token, share, period_seconds) {
    wish <- list(share = number(share), period_seconds = number(period_seconds))
    service$one("PUT", at_token(token, "/quota"), body = wish)
  }
  client$lift_quota <- function(token) service$end(at_token(token, "/quota"))
  client$token_usage <- function(token, page_size = 100) {
    service$list(at_token(token, "/usage"), page_size = page_size)
  }

  client$budgets <- function(page_size = 100) service$list("/v1/admin/budgets", page_size = page_size)
  client$set_budget <- function(subject, epsilon, reason, gaussian = NULL) {
    if (!is.null(gaussian)) gaussian <- list(epsilon = number(gaussian[[1]]), delta = number(gaussian[[2]]))
    wish <- given(epsilon = number(epsilon), gaussian = gaussian, reason = reason)
    service$one("PUT", paste0("/v1/admin/subjects/", quoted(text(subject)), "/budget"), body = wish)
  }
  client$raise_budgets <- function(epsilon, reason, at_most = NULL, delta = NULL, key = random_key()) {
    wish <- given(epsilon = number(epsilon), at_most = number(at_most), delta = number(delta), reason = reason)
    service$one("POST", "/v1/admin/budgets/raise", body = wish, key = key)
  }

  client$create_schedule <- function(study, question, every, quota, newcomers = FALSE, until = NULL,
                                     starts_at = NULL) {
    asked <- do.call(parameters, as.list(question))
    if (!length(asked)) asked <- stats::setNames(list(), character())
    wish <- given(question = asked, every = every, quota = number(quota), newcomers = newcomers,
                  until = number(until), starts_at = moment(starts_at))
    service$one("POST", at_study(study, "/schedules"), body = wish, repeatable = FALSE)
  }
  client$delete_schedule <- function(study, schedule) {
    service$end(at_study(study, "/schedules/", quoted(schedule)))
  }

  at_webhook <- function(webhook) paste0("/v1/admin/webhooks/", quoted(webhook))
  client$create_webhook <- function(url, events) {
    wish <- list(url = url, events = as_list(events))
    service$one("POST", "/v1/admin/webhooks", body = wish, repeatable = FALSE)
  }
  client$webhooks <- function(page_size = 100) service$list("/v1/admin/webhooks", page_size = page_size)
  client$find_webhook <- function(webhook) service$one("GET", at_webhook(webhook))
  client$delete_webhook <- function(webhook) service$end(at_webhook(webhook))
  client
}

# Sessions, led and watched. Taking part is for devices, which keep a ledger and make the noise.
sessions <- function(service) {
  at <- function(session, ...) paste0("/v1/sessions/", quoted(session), ...)
  client <- list()
  client$create_session <- function(study, protocol, epsilon, ..., answers_per_round = NULL, centres = NULL) {
    wish <- c(list(protocol = protocol, epsilon = number(epsilon)), lapply(given(...), number))
    if (!is.null(centres)) wish$centres <- lapply(centres, function(point) as_list(number(point)))
    # Any number of answers is null on the wire.
    if (identical(answers_per_round, "any")) wish["answers_per_round"] <- list(NULL)
    if (is.numeric(answers_per_round)) wish$answers_per_round <- number(answers_per_round)
    service$one("POST", at_study(study, "/sessions"), body = wish, key = random_key())
  }
  client$sessions <- function(study, page_size = 100) {
    service$list(at_study(study, "/sessions"), page_size = page_size)
  }
  client$session <- function(session) service$one("GET", at(session))
  client$close_round <- function(session, round) {
    service$one("POST", at(session, "/close-round"), body = list(round = number(round)))
  }
  client$finish_session <- function(session) {
    service$one("POST", at(session, "/finish"), body = stats::setNames(list(), character()))
  }
  client
}

#' @export
print.dither_client <- function(x, ...) {
  cat("a Dither service at ", attr(x, "url"), ": ", paste(names(x), collapse = ", "), "\n", sep = "")
  invisible(x)
}
