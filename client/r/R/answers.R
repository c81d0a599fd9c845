# Answers as tibbles: a row for each thing that an answer says, as the view published.answer_rows has them.

LISTS <- c(bin = "bins", cumulative = "cumulative", choice = "choices", coordinate = "coordinates",
           quartile = "quartiles")
BESIDE <- c("count", "mean", "sd", "variance", "prediction")

or <- function(value, other) if (is.null(value)) other else value

answer <- function(said) {
  rows <- list()
  for (one in c(list(said), said$groups)) {
    where <- paste0(names(one$where), ":", unlist(one$where), collapse = ",")
    if (!length(one$where)) where <- NA_character_
    if (!is.null(one$estimate)) rows <- c(rows, list(row(one, "answer", where)))
    for (part in names(LISTS)) {
      rows <- c(rows, lapply(one[[LISTS[[part]]]], row, part = part, where = where))
    }
    for (part in BESIDE) {
      if (is.list(one[[part]])) rows <- c(rows, list(row(one[[part]], part, where)))
    }
    for (cell in one$cells) {
      name <- paste0(said$measures, "=", unlist(cell$where[unlist(said$measures)]), collapse = "; ")
      rows <- c(rows, list(row(cell, "cell", where, name)))
    }
    # Both lines of a correlation, or the one that a regression is.
    lines <- if (is.null(one$slope)) one$lines else list(one)
    explained <- if (is.null(one$slope)) said$measures else list(said$of)
    for (place in seq_along(lines)) {
      for (part in c("slope", "intercept")) {
        rows <- c(rows, list(row(lines[[place]][[part]], part, where, explained[[place]])))
      }
    }
    if (!is.null(one$r_squared)) {
      item <- list(estimate = one$r_squared, interval = one$r_squared_interval)
      rows <- c(rows, list(row(item, "r_squared", where)))
    }
  }
  made <- if (length(rows)) do.call(rbind, rows) else row(list(), "answer", NA_character_)[0, ]
  row.names(made) <- NULL
  made <- tibble::as_tibble(made)
  structure(made, class = c("dither_answer", class(made)), said = said)
}

named <- function(item) or(item[["choice"]], or(item[["coordinate"]], or(item[["q"]], or(item[["at"]], NA))))

row <- function(item, part, where, name = named(item)) {
  figure <- function(value) as.numeric(or(value, NA))
  in_bin <- part %in% c("bin", "cumulative")
  data.frame(
    where = where,
    part = part,
    name = as.character(name),
    bin_lower = figure(if (in_bin) item$lower),
    bin_upper = figure(if (in_bin) item$upper),
    estimate = figure(or(item$estimate, item$share)),
    lower = figure(item$interval$lower),
    upper = figure(item$interval$upper)
  )
}

# Documents of a list as a tibble: a column for each field that any of them has, and epsilon.total for the total
# within epsilon.
records <- function(items) {
  items <- lapply(items, flat)
  fields <- unique(unlist(lapply(items, names)))
  fields <- Filter(function(field) !any(startsWith(fields, paste0(field, "."))), fields)
  columns <- lapply(stats::setNames(fields, fields), function(field) {
    values <- lapply(items, function(item) item[[field]])
    single <- all(vapply(values, function(value) is.null(value) || (is.atomic(value) && length(value) == 1), NA))
    if (single) unlist(lapply(values, or, NA)) else values
  })
  tibble::as_tibble(columns)
}

flat <- function(item) {
  parts <- lapply(names(item), function(name) {
    value <- item[[name]]
    if (!is.list(value) || is.null(names(value))) return(stats::setNames(list(value), name))
    inner <- flat(value)
    if (length(inner)) names(inner) <- paste0(name, ".", names(inner))
    inner
  })
  as.list(do.call(c, parts))
}

#' @export
print.dither_answer <- function(x, ...) {
  said <- attr(x, "said")
  # Not $: it would take measures for measure.
  of <- or(said[["measure"]], or(said[["of"]], said$study))
  if (length(said$measures)) of <- paste(unlist(said$measures), collapse = " and ")
  if (!is.null(said[["on"]])) of <- paste(of, "on", said$on)
  cat(said$statistic, " of ", of, ", which took at most ", format(or(said$epsilon_max, 0)), " of anyone's epsilon\n",
      sep = "")
  NextMethod()
}

#' @export
plot.dither_answer <- function(x, ...) {
  if (!requireNamespace("ggplot2", quietly = TRUE)) refuse("unsupported", "plots need the package ggplot2")
  said <- attr(x, "said")
  frame <- as.data.frame(x)
  middle <- ifelse(is.na(frame$bin_lower), NA, paste(frame$bin_lower, "to", frame$bin_upper))
  place <- ifelse(is.na(frame$where), "all people", frame$where)
  frame$place <- ifelse(is.na(middle), ifelse(is.na(frame$name), place, frame$name), middle)
  frame$place <- factor(frame$place, levels = unique(frame$place))
  ggplot2::ggplot(frame, ggplot2::aes(x = .data[["place"]], y = .data[["estimate"]])) +
    ggplot2::geom_pointrange(
      ggplot2::aes(ymin = .data[["lower"]], ymax = .data[["upper"]]), na.rm = TRUE
    ) +
    ggplot2::labs(x = NULL, y = said$statistic, title = said$study)
}
