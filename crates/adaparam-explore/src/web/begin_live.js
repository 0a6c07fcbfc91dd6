explorer.more = () => matching.section();
if (data.models.length > 0) typing.begin();
if (data.curves.runs.length > 0 || data.models.length === 0) training.begin(data.curves);
