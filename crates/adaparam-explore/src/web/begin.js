explorer.begin(data.runs);
